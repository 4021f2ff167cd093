// Common code of the tests of lists. It captures, optimises, prepares and runs a list on the device under test
// (backends/tests/device_under_test.h). It compares the result with the same commands launched one by one.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_TESTS_LISTS_TESTING_H_
#define TENSORFLOW_PLUGIN_COMMANDS_TESTS_LISTS_TESTING_H_

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/tests/device_under_test.h"
#include "tensorflow_plugin/commands/batch_stretches.h"
#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/memory_plan.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/stream_capture.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

struct Machine {
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Machine() {
    const Status status = testing::BackendUnderTest().CreateDevice(0, testing::OptionsUnderTest(3), &device);
    if (!status.ok()) std::abort();
    stream = device->CreateStream();
  }
};
inline Machine& TheMachine() {
  static auto* machine = new Machine;
  return *machine;
}

// Those of the device, with a cache of so few bytes that batches are run in parts, or with so many strands.
class SmallCache final : public ForwardedCapabilities {
 public:
  explicit SmallCache(int64_t bytes, int strands = 1)
      : ForwardedCapabilities(TheMachine().device->capabilities()), bytes_(bytes), strands_(strands) {}
  int64_t CacheBytes() const override { return bytes_; }
  int Strands() const override { return strands_; }

 private:
  const int64_t bytes_;
  const int strands_;
};

// A recorder with buffers of floats by name; the given ones keep their contents from run to run of a test.
class Lists : public ::testing::Test {
 protected:
  Lists() : capture_(*TheMachine().device) {}

  float* Given(std::vector<float> values) {
    auto* address = static_cast<float*>(capture_.NewBuffer(values.size() * sizeof(float), Buffer::Kind::kInput));
    contents_.push_back({capture_.Resolve(address).buffer, std::move(values)});
    return address;
  }
  float* Computed(int64_t n) {
    return static_cast<float*>(capture_.NewBuffer(n * sizeof(float), Buffer::Kind::kComputed));
  }
  // A copy of what the host has when the list runs, and a buffer of the host that gets a copy.
  float* FromHost(std::vector<float> values) {
    float* const address = Computed(static_cast<int64_t>(values.size()));
    CopyFromHostTo(std::move(values), address);
    return address;
  }
  void CopyFromHostTo(std::vector<float> values, float* address) {
    const size_t bytes = values.size() * sizeof(float);
    const void* host = capture_.NewBuffer(static_cast<int64_t>(bytes), Buffer::Kind::kOnHost);
    contents_.push_back({capture_.Resolve(host).buffer, std::move(values)});
    EXPECT_TRUE(capture_.stream().CopyHostToDevice(address, host, bytes).ok());
  }
  void ToHost(const float* address, int64_t n) {
    void* host = capture_.NewBuffer(n * sizeof(float), Buffer::Kind::kOnHost);
    EXPECT_TRUE(capture_.stream().CopyDeviceToHost(host, address, n * sizeof(float)).ok());
    capture_.list().live_out.push_back(capture_.Resolve(host).buffer);
  }
  void Want(const float* address) { capture_.list().live_out.push_back(capture_.Resolve(address).buffer); }

  // `explain`: of a command that may fail on data.
  template <typename Desc>
  void Record(const Desc& desc, const std::vector<const float*>& in, const std::vector<float*>& out,
              const DescribeError* explain = nullptr) {
    Args args;
    Status on_data;
    if (explain != nullptr) args.status = &on_data;
    args.explain = explain;
    for (size_t i = 0; i < in.size(); ++i) args.in[i] = in[i];
    for (size_t i = 0; i < out.size(); ++i) args.out[i] = out[i];
    const int64_t scratch = TheMachine().device->capabilities().WorkspaceBytes(desc);
    if (scratch != 0) args.workspace = capture_.NewBuffer(scratch, Buffer::Kind::kComputed);
    const Status status = capture_.device().Launch(capture_.stream(), desc, args);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void Launch(const Program* program, Dims shape, std::vector<std::pair<const float*, Dims>> in,
              std::vector<float*> out) {
    ElementwiseDesc desc;
    desc.program = program;
    desc.shape = shape;
    std::vector<const float*> addresses;
    for (size_t i = 0; i < in.size(); ++i) {
      addresses.push_back(in[i].first);
      desc.in_strides[i] = in[i].second;
    }
    Record(desc, addresses, out);
  }
  void Op(Opcode op, std::vector<const float*> in, float* out, int64_t n) {
    std::vector<std::pair<const float*, Dims>> with_strides;
    for (const float* address : in) with_strides.emplace_back(address, Dims{1});
    Launch(SingleOpProgram(op, DType::kFloat), {n}, with_strides, {out});
  }

  void Copy(const float* from, float* to, Dims shape, Dims src_strides, Dims dst_strides, int64_t src_offset = 0,
            int64_t dst_offset = 0) {
    CopyStridedDesc desc;
    desc.element_size = sizeof(float);
    desc.shape = shape;
    desc.src_strides = src_strides;
    desc.dst_strides = dst_strides;
    desc.src_offset = src_offset;
    desc.dst_offset = dst_offset;
    Record(desc, {from}, {to});
  }
  // Dense matrices, for every one of a batch; 0: of none.
  void MatMul(const float* a, const float* b, float* c, int64_t batch, int64_t m, int64_t k, int64_t n,
              bool transpose_b = false, bool transpose_a = false) {
    MatMulDesc desc;
    desc.m = m;
    desc.n = n;
    desc.k = k;
    desc.transpose_a = transpose_a;
    desc.transpose_b = transpose_b;
    if (batch != 0) {
      desc.batch = {batch};
      desc.a_batch_strides = {m * k};
      desc.b_batch_strides = {k * n};
    }
    ASSERT_EQ(TheMachine().device->capabilities().WorkspaceBytes(desc), 0);
    Record(desc, {a, b}, {c});
  }
  // Over an axis of a matrix.
  void Reduce(ReduceKind kind, const float* from, float* to, int64_t rows, int64_t columns, int axis) {
    ReduceDesc desc;
    desc.kind = kind;
    desc.source.program = IdentityProgram(DType::kFloat);
    desc.source.shape = {rows, columns};
    desc.source.in_strides[0] = {columns, 1};
    desc.axes = 1u << axis;
    Record(desc, {from}, {to});
  }
  void SumRows(const float* from, float* to, int64_t rows, int64_t columns) {
    Reduce(ReduceKind::kSum, from, to, rows, columns, 0);
  }
  // Exact in any order.
  void ReduceMax(const float* from, float* to, int64_t rows, int64_t columns, int axis) {
    Reduce(ReduceKind::kMax, from, to, rows, columns, axis);
  }
  // Small whole numbers, whose products and sums are exact in any order.
  static std::vector<float> Whole(int64_t n) {
    std::vector<float> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i * 7 % 11) - 5;
    return values;
  }
  template <typename Desc>
  static int Count(const CommandList& list) {
    int count = 0;
    for (const Command& command : list.commands) count += std::holds_alternative<Desc>(command.desc);
    return count;
  }

  // As the device does it, or as any does that has no way of its own.
  enum class Way { kPrepared, kOneByOne };
  static std::unique_ptr<Executable> Prepare(Way way, std::shared_ptr<const CommandList> list, const MemoryPlan& plan) {
    Device& device = *TheMachine().device;
    return way == Way::kPrepared ? device.Prepare(std::move(list), plan)
                                 : device.Device::Prepare(std::move(list), plan);
  }

  // The contents of the given and the wanted buffers after a run, in the order of their numbers. Host buffers are read
  // as soon as Run has returned. Host memory that the list reads is spoiled once the list no longer keeps it.
  std::vector<std::vector<float>> Run(const CommandList& list, Way way = Way::kPrepared) {
    return Run(list, way, PlanMemory(list));
  }
  std::vector<std::vector<float>> Run(const CommandList& list, Way way, const MemoryPlan& plan) {
    Machine& m = TheMachine();
    std::vector<char*> addresses(list.buffers.size(), nullptr);
    std::vector<void*> allocated;
    const auto allocate = [&](int64_t bytes) {
      allocated.push_back(m.device->Allocate(bytes + 64));
      EXPECT_TRUE(m.stream->Memset(allocated.back(), 0xff, bytes + 64).ok());  // NaNs
      return static_cast<char*>(allocated.back());
    };
    char* block = allocate(plan.bytes);
    std::set<int> kept(list.live_out.begin(), list.live_out.end());
    std::vector<std::vector<float>> on_host(list.buffers.size());
    for (size_t b = 0; b < list.buffers.size(); ++b) {
      if (plan.offsets[b] != MemoryPlan::kElsewhere) {
        addresses[b] = block + plan.offsets[b];
      } else if (list.buffers[b].kind == Buffer::Kind::kFixed) {
        addresses[b] = const_cast<char*>(static_cast<const char*>(list.buffers[b].address));
      } else if (list.buffers[b].kind == Buffer::Kind::kOnHost) {
        on_host[b].assign(list.buffers[b].bytes / sizeof(float), NAN);
        addresses[b] = reinterpret_cast<char*>(on_host[b].data());
      } else {
        addresses[b] = allocate(list.buffers[b].bytes);
      }
    }
    for (const auto& [buffer, values] : contents_) {
      if (list.buffers[buffer].kind == Buffer::Kind::kOnHost) {
        std::copy(values.begin(), values.end(), on_host[buffer].begin());
        kept.insert(buffer);
        continue;
      }
      EXPECT_TRUE(m.stream->CopyHostToDevice(addresses[buffer], values.data(), values.size() * sizeof(float)).ok());
      kept.insert(buffer);
    }
    const auto executable = Prepare(way, std::make_shared<const CommandList>(list), plan);
    failed_ = -1;
    const auto seen = std::make_shared<std::vector<std::vector<float>>>();
    const auto spoil = [&, seen](void*) {
      *seen = on_host;
      for (const auto& [buffer, values] : contents_) std::fill(on_host[buffer].begin(), on_host[buffer].end(), NAN);
    };
    failure_ = executable->Run(*m.stream, addresses.data(), std::shared_ptr<void>(this, spoil), &failed_);
    // Only what the list wrote: the rest may be spoiled at this moment.
    std::vector<std::vector<float>> at_once(on_host.size());
    for (int b : list.live_out) at_once[b] = on_host[b];
    m.stream->Wait();
    EXPECT_TRUE(failure_.ok() || expects_failure_) << failure_.message();
    std::vector<std::vector<float>> results;
    for (int b : kept) {
      if (list.buffers[b].kind == Buffer::Kind::kOnHost) {
        const bool read = std::any_of(contents_.begin(), contents_.end(), [b](const auto& c) { return c.first == b; });
        results.push_back((read ? *seen : at_once)[b]);
        continue;
      }
      const size_t bytes = list.buffers[b].bytes;
      std::vector<float> values((bytes + sizeof(float) - 1) / sizeof(float));
      EXPECT_TRUE(m.stream->CopyDeviceToHost(values.data(), addresses[b], bytes).ok());
      m.stream->Wait();
      results.push_back(std::move(values));
    }
    m.stream->Wait();
    EXPECT_TRUE(m.stream->TakeStatus().ok());
    for (void* address : allocated) m.device->Deallocate(address);
    return results;
  }

  // Puts the commands that run once before those of the list.
  static void Prepend(const CommandList& hoisted, CommandList* list) {
    for (int b : hoisted.live_out) list->buffers[b].kind = Buffer::Kind::kComputed;
    list->commands.insert(list->commands.begin(), hoisted.commands.begin(), hoisted.commands.end());
  }
  // Optimised, with what is computed of every other given buffer, as far as nobody writes it, kept from an earlier run.
  CommandList WithWhatIsKept(const Capabilities& can = TheMachine().device->capabilities()) {
    CommandList list = capture_.list(), hoisted;
    const BufferUses uses = UsesOf(list);
    std::vector<bool> invariant(list.buffers.size(), false);
    for (size_t b = 0; b < invariant.size(); b += 2) {
      invariant[b] = list.buffers[b].kind == Buffer::Kind::kInput && uses.buffers[b].writers.empty();
    }
    Optimize(can, {}, invariant, &list, &hoisted);
    Prepend(hoisted, &list);
    return list;
  }

  // The list with so many strands wherever a batch can be cut.
  CommandList InStrands(int strands) const {
    CommandList list = capture_.list(), none;
    BatchStretches stretches(TheMachine().device->capabilities(), capture_.list(), &none);
    const int size = static_cast<int>(list.commands.size());
    list.commands.clear();
    for (int i = 0; i < size;) {
      const BatchStretch stretch = stretches.Longest(i, size, strands);
      if (stretch.commands.empty()) {
        list.commands.push_back(capture_.list().commands[i++]);
        continue;
      }
      stretches.Emit(stretch, /*as_strands=*/true, &list.buffers, &list.commands);
      i = stretch.end();
    }
    return list;
  }
  // An order in which a device may run adjacent strands: the last one first, or a command of each in turns.
  static CommandList InAnotherOrder(CommandList list, bool in_turns) {
    const int size = static_cast<int>(list.commands.size());
    std::vector<Command> reordered;
    for (int begin = 0, end; begin < size; begin = end) {
      end = EndOfStrands(list, begin);
      std::map<int, std::vector<Command>> strands;
      for (int i = begin; i < end; ++i) strands[-list.commands[i].strand].push_back(list.commands[i]);
      const size_t length = strands.begin()->second.size();
      for (size_t i = 0; i < (in_turns ? length : 1); ++i) {
        for (const auto& [number, commands] : strands) {
          reordered.insert(reordered.end(), commands.begin() + i, in_turns ? commands.begin() + i + 1 : commands.end());
        }
      }
    }
    list.commands = std::move(reordered);
    return list;
  }
  void ExpectSameInStrands(int strands) {
    const CommandList list = InStrands(strands);
    const MemoryPlan plan = PlanMemory(list);
    const auto want = Run(capture_.list(), Way::kOneByOne);
    ExpectEqual(want, Run(list), Text(list));
    for (bool in_turns : {false, true}) {
      ExpectEqual(want, Run(InAnotherOrder(list, in_turns), Way::kOneByOne, plan), "in another order:\n" + Text(list));
    }
  }

  // Runs the list one by one, prepared as captured, prepared after optimisation, split in two lists, with batches in
  // parts and in strands. All must give the same, bit for bit.
  CommandList ExpectSame(const std::string& what = "") {
    CommandList optimised = capture_.list();
    Optimize(TheMachine().device->capabilities(), {}, &optimised);
    const CommandList kept = WithWhatIsKept(), tiled = WithWhatIsKept(SmallCache(64));
    const auto want = Run(capture_.list(), Way::kOneByOne);
    std::vector<const CommandList*> lists = {&capture_.list(), &optimised, &kept};
    if (sums_are_exact_) lists.push_back(&tiled);
    for (const CommandList* list : lists) {
      ExpectEqual(want, Run(*list), what + ":\n" + Text(capture_.list()) + "became\n" + Text(*list));
    }
    if (sums_are_exact_) ExpectSameInStrands(2);
    return optimised;
  }
  // The same bits, whatever they stand for.
  static void ExpectEqual(const std::vector<std::vector<float>>& want, const std::vector<std::vector<float>>& got,
                          const std::string& what) {
    ASSERT_EQ(want.size(), got.size()) << what;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(want[i].size(), got[i].size()) << what;
      EXPECT_EQ(std::memcmp(want[i].data(), got[i].data(), want[i].size() * sizeof(float)), 0)
          << "result " << i << " of " << what;
    }
  }
  static std::string Text(const CommandList& list) {
    std::string text;
    for (const Command& command : list.commands) text += ToString(command) + "\n";
    return text;
  }

  StreamCapture capture_;
  std::vector<std::pair<int, std::vector<float>>> contents_;
  // False for products of values that are no whole numbers: a product of fewer rows may add in another order.
  bool sums_are_exact_ = true;
  // The last run's: what failed, and which command.
  bool expects_failure_ = false;
  Status failure_;
  int failed_ = -1;
};

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_TESTS_LISTS_TESTING_H_
