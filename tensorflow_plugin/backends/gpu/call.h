// How the primitives' files run a kernel.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_CALL_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_CALL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

// One run of a kernel: its arguments in the order of the kernel's parameters, then Run.
//
//   Call call(machine, queue, "fill float", [] { return source; });
//   call.Memory(args.out[0]).Value<float>(x).Value<uint64_t>(n);
//   return call.Run(n);
class Call {
 public:
  // `key` names the kernel among all of the device's. `source` makes its source when it is needed for the first time;
  // the preludes (codegen/sources.h) come before it.
  Call(Machine& machine, Queue& queue, const std::string& key, const std::function<std::string()>& source);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Parameter MEMORY(name): an address in the device's memory. A null one is for what the kernel does not touch.
  Call& Memory(const void* address) {
    Add(Argument::kMemory).address = address;
    return *this;
  }
  // Parameter `const T name`.
  template <typename T>
  Call& Value(const T& value) {
    static_assert(sizeof(T) <= sizeof(Argument::value));
    Argument& argument = Add(Argument::kValue);
    argument.size = sizeof(T);
    std::memcpy(&argument.value, &value, sizeof(T));
    return *this;
  }
  // Parameter `CONSTANT long* name`.
  Call& Table(const std::vector<int64_t>& numbers);
  // Parameter MEMORY(report): what FAIL (in prelude.cl) writes to.
  Call& Report();

  // Items a kernel's group has unless it says otherwise.
  static constexpr size_t kGroup = 256;
  size_t group() const { return group_; }

  // Enqueues at least `items` of work in groups of group(), along one axis: what is beyond, the kernel leaves out.
  Status Run(int64_t items);
  // The same for items that do `each` things, a group's items apart. Few of them are spread over smaller groups.
  Status RunEach(int64_t things, int64_t each);
  // So many groups, each of `local` items, along three axes. `time` may be null.
  Status RunGroups(const size_t groups[3], const size_t local[3], std::shared_ptr<const CommandTime>* time = nullptr);

  // Turns a failure into a status: `judge` gets the least number that any item reported.
  using Judge = std::function<Status(uint32_t number)>;
  // The same as Run for a kernel with a report. With args.status this waits and leaves the failure there, else in the
  // stream.
  Status RunChecked(int64_t items, const Args& args, Judge judge);
  // That which follows the run.
  Status Check(const Args& args, Judge judge);

 private:
  Argument& Add(Argument::Kind kind) {
    launch_.arguments.emplace_back().kind = kind;
    return launch_.arguments.back();
  }

  Machine& machine_;
  Queue& queue_;
  Status status_;  // the first that went wrong
  Launch launch_;
  size_t group_ = kGroup;
  size_t report_ = 0;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_CALL_H_
