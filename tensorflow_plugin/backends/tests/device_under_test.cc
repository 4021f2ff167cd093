#include "tensorflow_plugin/backends/tests/device_under_test.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/backends.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/example/backend.h"
#include "tensorflow_plugin/faults/faulty_backend.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace xpu::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

constexpr char kHostBackend[] = "XPU_HOST", kReferenceBackend[] = "XPU_REFERENCE";

// The backends that must support whatever a test asks for: none of their cases is left out.
const std::set<std::string> kComplete = {kHostBackend, kReferenceBackend};

// Buffers begin at multiples of this, as allocations do, and have unwritten bytes before and behind.
constexpr size_t kAlignment = 256, kGuard = 64;
constexpr size_t kFirstReserve = size_t{1} << 20;
constexpr int64_t kMemoryLimit = int64_t{2} << 30;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

void DieUnlessOk(const Status& status, const char* what) {
  if (!status.ok()) Die(errors::Concat(what, ": ", status.message()));
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

size_t RoundUp(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// A place in device memory: of an input or an output.
struct Place {
  size_t begin, bytes;
};

// Holds up a stream until it is opened.
class Gate {
 public:
  void HoldUp(Stream& stream) {
    stream.HostCallback([this] {
      std::unique_lock<std::mutex> lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
      return OkStatus();
    });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// Under the address sanitizer the kernels of a backend on host memory may not even read beside their buffers.
void SetForbidden(const char* memory, const std::vector<Place>& places, size_t end, bool forbidden) {
#if defined(__SANITIZE_ADDRESS__)
  if (!forbidden) return __asan_unpoison_memory_region(memory, end);
  size_t free_from = 0;
  for (const Place& place : places) {  // in the order of their addresses
    __asan_poison_memory_region(memory + free_from, place.begin - free_from);
    free_from = place.begin + place.bytes;
  }
  __asan_poison_memory_region(memory + free_from, end - free_from);
#else
  (void)memory, (void)places, (void)end, (void)forbidden;
#endif
}

struct Count {
  int64_t cases = 0, wrong = 0, not_supported = 0;
};

// Prints the counts when all tests are done.
class Summary : public ::testing::Environment {
 public:
  static Summary& Get() {
    static Summary* const summary = [] {
      auto* const added = new Summary;
      ::testing::AddGlobalTestEnvironment(added);  // which deletes it
      return added;
    }();
    return *summary;
  }

  void Add(const std::string& label, CaseResult result) {
    Count& count = counts_[label];
    ++count.cases;
    count.wrong += result == CaseResult::kWrong;
    count.not_supported += result == CaseResult::kNotSupported;
  }

  // A backend whose accelerator this machine has not is not tested here: loudly.
  void SetUp() override {
    const Backend& backend = BackendUnderTest();
    DeviceInfo info;
    if (MustSupportEverything() || backend.DeviceCount(OptionsUnderTest(0)) != 0) return;
    const std::string why = backend.Describe(0, OptionsUnderTest(0), &info).message();
    std::fprintf(stderr, "NOT TESTED: %s has no device here: %s\n", backend.subdevice_type(), why.c_str());
    GTEST_SKIP() << why;
  }

  void TearDown() override {
    Count total;
    std::ostringstream denied, lines;
    for (const auto& [label, count] : counts_) {
      total.cases += count.cases;
      total.wrong += count.wrong;
      total.not_supported += count.not_supported;
      if (count.not_supported != 0) {
        denied << "  not supported: " << label << ", " << count.not_supported << " of " << count.cases << " cases\n";
      }
      lines << label << '\t' << count.cases << '\t' << count.wrong << '\t' << count.not_supported << '\n';
    }
    std::printf("%s: %lld cases, %lld wrong, %lld not supported\n%s", BackendUnderTest().subdevice_type(),
                static_cast<long long>(total.cases), static_cast<long long>(total.wrong),
                static_cast<long long>(total.not_supported), denied.str().c_str());
    const std::string path = Variable("XPU_TEST_SUMMARY");
    if (!path.empty() && !(std::ofstream(path, std::ios::app) << lines.str())) Die("cannot write to " + path);
  }

 private:
  std::map<std::string, Count> counts_;
};

// Before the tests run: an environment that is added while they do is not torn down.
[[maybe_unused]] Summary& the_summary = Summary::Get();

struct UnderTest {
  const Backend* backend = nullptr;
  bool isolate = false;
  UnderTest() {
    const std::string name = Variable("XPU_TEST_BACKEND"), isolate_text = Variable("XPU_TEST_ISOLATE");
    backend = name.empty() ? Backends().front() : FindBackend(name);
    if (name == example::TheBackend().subdevice_type()) backend = &example::TheBackend();  // in no table
    if (backend == nullptr) Die("XPU_TEST_BACKEND is \"" + name + "\", of which there is no backend");
    if (!isolate_text.empty() && isolate_text != "0" && isolate_text != "1") {
      Die("XPU_TEST_ISOLATE is \"" + isolate_text + "\", expected 0 or 1");
    }
    isolate = isolate_text == "1";
    const std::string faults = Variable("XPU_TEST_FAULTS");
    if (faults.empty()) return;
    std::vector<FaultRule> rules;
    if (!ParseFaultRules(faults, &rules)) Die("XPU_TEST_FAULTS is \"" + faults + "\", expected " + kFaultGrammar);
    backend = new FaultyBackend(*backend, rules);
  }
};

const UnderTest& TheBackend() {
  static const UnderTest* const under_test = new UnderTest;
  return *under_test;
}

bool IsHostBackend() { return std::string(BackendUnderTest().subdevice_type()) == kHostBackend; }

// Scratch memory of a command, in which nothing has been written, with a guard on both sides. The stream outlives it.
class Scratch final : public WorkspaceSource {
 public:
  Scratch(Device& device, Stream& stream) : device_(device), stream_(stream) {}
  ~Scratch() override { device_.Deallocate(memory_); }

  Status Allocate(int64_t bytes, void** address) override {
    before_.assign(kAlignment + static_cast<size_t>(bytes) + kGuard, static_cast<char>(kUnwritten));
    after_ = before_;
    memory_ = static_cast<char*>(device_.Allocate(before_.size()));
    if (memory_ == nullptr) Die(errors::Concat("cannot allocate ", before_.size(), " bytes on the device to test"));
    *address = memory_ + kAlignment;
    return stream_.CopyHostToDevice(memory_, before_.data(), before_.size());
  }
  // Enqueues a copy of what is there now.
  Status Fetch() { return stream_.CopyDeviceToHost(after_.data(), memory_, after_.size()); }
  // True if the guards of the fetched result are as they were.
  bool IsIntact() const {
    const auto equal = [&](size_t from, size_t size) {
      return size == 0 || std::memcmp(before_.data() + from, after_.data() + from, size) == 0;
    };
    return before_.empty() || (equal(0, kAlignment) && equal(before_.size() - kGuard, kGuard));
  }

 private:
  Device& device_;
  Stream& stream_;
  char* memory_ = nullptr;
  std::vector<char> before_, after_;
};

}  // namespace

TestDevice::TestDevice(const Backend& backend, const BackendOptions& options)
    : on_host_memory_(kComplete.count(backend.subdevice_type()) != 0 && !options.isolate_memory) {
  DieUnlessOk(backend.CreateDevice(0, options, &device_), "cannot create the device to test");
  stream_ = device_->CreateStream();
  if (stream_ == nullptr) Die("cannot create a stream on the device to test");
}

TestDevice::~TestDevice() {
  stream_->Wait();
  device_->Deallocate(memory_);
}

void TestDevice::Reserve(size_t bytes) {
  if (bytes <= size_) return;
  device_->Deallocate(memory_);
  size_ = std::max(kFirstReserve, size_);
  while (size_ < bytes) size_ *= 2;
  memory_ = static_cast<char*>(device_->Allocate(size_));
  if (memory_ == nullptr) Die(errors::Concat("cannot allocate ", size_, " bytes on the device to test"));
}

Outcome TestDevice::RunCommand(const LaunchFunction& launch, const std::vector<Array>& inputs,
                               const std::vector<Output>& outputs, Waiting waiting) {
  // Lays the buffers out, each with a guard on both sides.
  std::vector<Place> places;
  size_t end = 0;
  auto place = [&](size_t bytes) {
    places.push_back({RoundUp(end + kGuard), bytes});
    end = places.back().begin + bytes;
    return places.back();
  };
  std::vector<Place> in, out;
  for (const Array& input : inputs) in.push_back(place(input.num_bytes()));
  for (const Output& output : outputs) {
    out.push_back(output.over_input >= 0 ? in[output.over_input] : place(output.size * SizeOf(output.type)));
  }
  end += kGuard;
  Reserve(end);

  image_.assign(end, static_cast<char>(kUnwritten));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (in[i].bytes != 0) std::memcpy(image_.data() + in[i].begin, inputs[i].data(), in[i].bytes);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Array* const initial = outputs[i].initial;
    if (initial == nullptr || out[i].bytes == 0) continue;
    if (initial->num_bytes() != out[i].bytes) Die("an output and what it starts as differ in size");
    std::memcpy(image_.data() + out[i].begin, initial->data(), out[i].bytes);
  }
  after_.assign(end, 0);

  Args args{};
  for (size_t i = 0; i < in.size(); ++i)
    args.in[i] = inputs[i].type() == DType::kInvalid ? nullptr : memory_ + in[i].begin;
  for (size_t i = 0; i < out.size(); ++i) args.out[i] = memory_ + out[i].begin;
  Scratch scratch(*device_, *stream_);
  args.workspace_source = &scratch;
  Status of_command;
  if (waiting == Waiting::kAwaited) args.status = &of_command;

  // While kernels run, the memory between the buffers is out of bounds; copies of all of it are not.
  const bool guarded = on_host_memory_ && kAddressSanitizer;
  Gate gate;
  DieUnlessOk(stream_->CopyHostToDevice(memory_, image_.data(), end), "copy to the device");
  if (guarded) stream_->Wait();
  if (guarded) SetForbidden(memory_, places, end, true);
  const bool gated = waiting == Waiting::kQueued;
  if (gated) gate.HoldUp(*stream_);
  Outcome outcome;
  outcome.status = launch(*stream_, args);
  outcome.launched = outcome.status.ok();
  if (gated) gate.Open();
  if (guarded) stream_->Wait();
  if (guarded) SetForbidden(memory_, places, end, false);
  DieUnlessOk(stream_->CopyDeviceToHost(after_.data(), memory_, end), "copy from the device");
  DieUnlessOk(scratch.Fetch(), "copy of scratch memory from the device");
  stream_->Wait();
  const Status of_stream = stream_->TakeStatus();
  if (outcome.launched) outcome.status = of_command.ok() ? of_stream : of_command;

  // Everything but the outputs is as it was.
  for (size_t i = 0; i < outputs.size(); ++i) {
    Array result(outputs[i].type, outputs[i].size);
    if (out[i].bytes == 0) {
      outcome.out.push_back(result);
      continue;
    }
    std::memcpy(result.data(), after_.data() + out[i].begin, out[i].bytes);
    std::memcpy(image_.data() + out[i].begin, after_.data() + out[i].begin, out[i].bytes);
    outcome.out.push_back(std::move(result));
  }
  if (std::memcmp(image_.data(), after_.data(), end) != 0) {
    const size_t at = std::mismatch(image_.begin(), image_.end(), after_.begin()).first - image_.begin();
    std::ostringstream where;
    where << "byte " << at << " was changed; buffers, inputs first, are at";
    for (const Place& p : places) where << " [" << p.begin << ", " << p.begin + p.bytes << ")";
    outcome.trespass = where.str();
  }
  if (!scratch.IsIntact()) outcome.trespass += " what is beside the scratch memory was changed";
  return outcome;
}

const Backend& BackendUnderTest() { return *TheBackend().backend; }

BackendOptions OptionsUnderTest(int threads) {
  BackendOptions options;
  options.memory_limit = kMemoryLimit;
  options.threads = threads;
  options.isolate_memory = TheBackend().isolate;
  return options;
}

bool MustSupportEverything() { return kComplete.count(BackendUnderTest().subdevice_type()) != 0; }

const std::vector<Variant>& Variants() {
  static const auto* const variants = [] {
    auto* const list = new std::vector<Variant>;
    auto add = [&](const std::string& name, int threads, Waiting waiting, const std::vector<cpu::Isa>& isas) {
      auto* const device = new TestDevice(BackendUnderTest(), OptionsUnderTest(threads));
      if (isas.empty()) list->push_back({name, device, waiting, -1});
      for (cpu::Isa isa : isas) {
        list->push_back({errors::Concat(name, " ", cpu::Name(isa)), device, waiting, static_cast<int>(isa)});
      }
    };
    if (IsHostBackend()) {
      std::vector<cpu::Isa> isas;
      for (int i = 0; i < cpu::kNumIsas; ++i) {
        if (cpu::HasIsa(static_cast<cpu::Isa>(i))) isas.push_back(static_cast<cpu::Isa>(i));
      }
      // Few primitives tell sets of AVX-512 from each other: each of these sets is in one of the variants.
      std::vector<cpu::Isa> others = isas;
      if (isas.back() >= cpu::Isa::kAvx512Vnni) {
        isas.pop_back();
        others.erase(others.end() - 2);
      }
      add("1 thread", 1, Waiting::kAwaited, isas);
      add("3 threads", 3, Waiting::kQueued, others);
    } else {
      add("awaited", 0, Waiting::kAwaited, {});
      if (Variable("XPU_TEST_AWAITED") != "1") add("queued", 0, Waiting::kQueued, {});
    }
    return list;
  }();
  return *variants;
}

UseVariant::UseVariant(const Variant& variant) {
  if (variant.isa >= 0) scoped_isa_ = std::make_shared<cpu::ScopedIsa>(static_cast<cpu::Isa>(variant.isa));
}

UseVariant::~UseVariant() = default;

TestDevice& Reference() {
  static TestDevice* const reference = [] {
    BackendOptions options;
    options.memory_limit = kMemoryLimit;
    options.threads = 1;
    return new TestDevice(*FindBackend(kReferenceBackend), options);
  }();
  return *reference;
}

void CountCase(const std::string& label, CaseResult result) { Summary::Get().Add(label, result); }

}  // namespace xpu::testing
