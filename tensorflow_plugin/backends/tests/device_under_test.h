// Runs commands on a Device as a plugin would: inputs copied to device memory, the command launched on a stream,
// outputs copied back. Nothing here, and no test of a primitive, knows where that memory is or who computes.
//
// The environment chooses what is tested:
//   XPU_TEST_BACKEND  the subdevice type, such as XPU_REFERENCE; the first in the table of backends if unset
//   XPU_TEST_ISOLATE  1: with BackendOptions::isolate_memory
//   XPU_TEST_AWAITED  1: no case is held up before it runs, for drivers that run commands while they are enqueued
//   XPU_TEST_FAULTS   rules of TF_XPU_FAULT (faults/rules.h): around that backend is one that follows them
//   XPU_TEST_SUMMARY  a file to which the summary of the cases is added
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_DEVICE_UNDER_TEST_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_DEVICE_UNDER_TEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/array.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::testing {

// An output of a command: how large it is and what lies there before the command runs.
struct Output {
  DType type = DType::kInvalid;
  int64_t size = 0;
  const Array* initial = nullptr;  // else nothing has been written there (kUnwritten)
  int over_input = -1;             // if not negative, it takes this input's place in memory
};

struct Outcome {
  Status status;           // of the launch, or else of the command
  bool launched = false;   // the launch itself was accepted
  std::vector<Array> out;  // what is in device memory afterwards, also when the command failed
  std::string trespass;    // not empty: says what the command wrote beside its outputs
};

// How a command is waited for.
enum class Waiting {
  kAwaited,  // through Args::status: Launch returns when the command has run
  kQueued,   // through the stream; nothing runs before everything has been enqueued and the descriptor is gone
};

// A device, a stream and some memory.
class TestDevice {
 public:
  // Aborts with a message if there is no such device.
  TestDevice(const Backend& backend, const BackendOptions& options);
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  Device& device() { return *device_; }

  // An input of no type (Array()) has no address either.
  template <typename Desc>
  Outcome Run(const Desc& desc, const std::vector<Array>& inputs, const std::vector<Output>& outputs,
              Waiting waiting = Waiting::kQueued) {
    return RunCommand(
        [&](Stream& stream, const Args& args) {
          // The device must have copied the descriptor when Launch returns.
          Desc copy = desc;
          const Status status = device_->Launch(stream, copy, args);
          copy = Desc();
          return status;
        },
        inputs, outputs, waiting);
  }

 private:
  using LaunchFunction = std::function<Status(Stream& stream, const Args& args)>;
  Outcome RunCommand(const LaunchFunction& launch, const std::vector<Array>& inputs, const std::vector<Output>& outputs,
                     Waiting waiting);
  void Reserve(size_t bytes);

  const bool on_host_memory_;  // device addresses are the host's
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  char* memory_ = nullptr;  // on the device
  size_t size_ = 0;
  std::vector<char> image_, after_;  // of that memory, before and after a command
};

// One way to run the backend under test: for the host backend, an instruction set and a number of threads.
struct Variant {
  std::string name;
  TestDevice* device;
  Waiting waiting;
  int isa;  // -1: the backend has no such choice
};

// All ways; at least one. The devices live for ever.
const std::vector<Variant>& Variants();
// Chooses the variant's instruction set while alive.
class UseVariant {
 public:
  explicit UseVariant(const Variant& variant);
  ~UseVariant();

 private:
  std::shared_ptr<void> scoped_isa_;
};

// The backend under test, as XPU_TEST_BACKEND and XPU_TEST_FAULTS say, and the options it gets.
const Backend& BackendUnderTest();
BackendOptions OptionsUnderTest(int threads);
// True if everything that the descriptors define must be supported. That holds for the backends named in the list
// there. A command that another backend denies is counted and left out.
bool MustSupportEverything();

// The reference, which is the specification.
TestDevice& Reference();

// Counts a case of a primitive (with its kind and type, such as "MatMul half") for the summary after all tests. It says
// how many were run, how many went wrong, and how many the backend does not support.
enum class CaseResult { kRight, kWrong, kNotSupported };
void CountCase(const std::string& label, CaseResult result);

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_DEVICE_UNDER_TEST_H_
