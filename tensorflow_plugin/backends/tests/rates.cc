// Rates of a backend's copies and primitives, without TensorFlow: to be read beside what the device's maker promises.
//
//   XPU_TEST_BACKEND=XPU_CUDA bazel run -c opt //tensorflow_plugin/backends/tests:rates
//
// Prints Markdown. Data are random numbers; a figure is the least of several runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/backends.h"
#include "tensorflow_plugin/primitives/command_list.h"
#include "tensorflow_plugin/primitives/float_precision.h"

namespace xpu {
namespace {

constexpr int kRounds = 5;

void DieUnlessOk(const Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.message().c_str());
  std::exit(1);
}

class Rates {
 public:
  explicit Rates(Device& device) : device_(device), stream_(device.CreateStream()) {}

  // Device memory of random bytes, none of which makes a number large or a NaN.
  void* Random(int64_t bytes) {
    void* const address = Empty(bytes);
    std::vector<uint32_t> words(static_cast<size_t>(bytes) / 4 + 1);
    std::mt19937 random(1);
    for (uint32_t& word : words) word = (random() & 0xbf7fbf7f) | 0x30003000;
    DieUnlessOk(stream_->CopyHostToDevice(address, words.data(), static_cast<size_t>(bytes)), "a copy to the device");
    stream_->Wait();
    return address;
  }
  void* Empty(int64_t bytes) {
    void* const address = device_.Allocate(static_cast<size_t>(bytes));
    if (address == nullptr) DieUnlessOk(errors::ResourceExhausted(bytes, " bytes"), "allocation");
    made_.push_back(address);
    return address;
  }
  void Free() {
    stream_->Wait();
    for (void* address : made_) device_.Deallocate(address);
    made_.clear();
  }

  // Runs it so many times in a row, and prints the rate: `amount` of `unit` in a run.
  void Show(const std::string& what, int times, double amount, const char* unit, const std::function<Status()>& run) {
    using Clock = std::chrono::steady_clock;
    double least = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < times; ++i) {
        const Status status = run();
        if (!status.ok()) {
          std::printf("| %s | | %s |\n", what.c_str(), status.message().c_str());
          return;
        }
      }
      stream_->Wait();
      least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count() / times);
    }
    DieUnlessOk(stream_->TakeStatus(), what.c_str());
    std::printf("| %s | %.4g ms | %.4g %s |\n", what.c_str(), least * 1e3, amount / least / 1e9, unit);
    std::fflush(stdout);
  }

  template <typename Desc>
  void ShowCommand(const std::string& what, int times, double amount, const char* unit, const Desc& desc,
                   const std::vector<const void*>& in, const std::vector<void*>& out) {
    Args args{};
    std::copy(in.begin(), in.end(), args.in);
    std::copy(out.begin(), out.end(), args.out);
    const int64_t scratch = device_.capabilities().WorkspaceBytes(desc);
    if (scratch > 0) args.workspace = Empty(scratch);
    Show(what, times, amount, unit, [&] { return device_.Launch(*stream_, desc, args); });
  }

  void Copies() {
    constexpr int64_t kBytes = int64_t{1} << 28;
    void* const device = Random(kBytes);
    void* const other = Empty(kBytes);
    std::vector<char> ordinary(kBytes, 1);
    void* const pinned = device_.AllocateHost(kBytes);
    Show("copy from ordinary memory", 2, kBytes, "GB/s",
         [&] { return stream_->CopyHostToDevice(device, ordinary.data(), kBytes); });
    Show("copy from pinned memory", 2, kBytes, "GB/s",
         [&] { return stream_->CopyHostToDevice(device, pinned, kBytes); });
    Show("copy to ordinary memory", 2, kBytes, "GB/s",
         [&] { return stream_->CopyDeviceToHost(ordinary.data(), device, kBytes); });
    Show("copy to pinned memory", 2, kBytes, "GB/s", [&] { return stream_->CopyDeviceToHost(pinned, device, kBytes); });
    Show("copy on the device, read and written", 10, 2 * kBytes, "GB/s",
         [&] { return stream_->CopyDeviceToDevice(other, device, kBytes); });
    stream_->Wait();
    device_.DeallocateHost(pinned);
    Free();
  }

  void Elements() {
    constexpr int64_t kElements = int64_t{1} << 26, kRow = 1024, kRows = kElements / kRow, kBytes = 4 * kElements;
    void* const x = Random(kBytes);
    void* const y = Random(kBytes);
    void* const z = Empty(kBytes);
    ElementwiseDesc elements;
    elements.shape = {kElements};
    for (int i = 0; i < 2; ++i) elements.in_strides[i] = {1};
    elements.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
    ShowCommand("Add", 10, 3 * kBytes, "GB/s", elements, {x, y}, {z});
    elements.program = SingleOpProgram(Opcode::kTanh, DType::kFloat);
    ShowCommand("Tanh", 10, 2 * kBytes, "GB/s", elements, {x}, {z});
    elements.program = CastProgram(DType::kFloat, DType::kBFloat16);
    ShowCommand("cast to bfloat16", 10, 6 * kElements, "GB/s", elements, {x}, {z});
    elements.program = CastProgram(DType::kBFloat16, DType::kFloat);
    ShowCommand("cast from bfloat16", 10, 6 * kElements, "GB/s", elements, {x}, {z});
    elements.program = SingleOpProgram(Opcode::kAdd, DType::kBFloat16);
    ShowCommand("Add, bfloat16", 10, 6 * kElements, "GB/s", elements, {x, y}, {z});
    elements.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
    elements.shape = {kRows, kRow};
    elements.in_strides[0] = {kRow, 1};
    elements.in_strides[1] = {0, 1};
    ShowCommand("Add of a row", 10, 2 * kBytes, "GB/s", elements, {x, y}, {z});
    ReduceDesc sum;
    sum.source.program = IdentityProgram(DType::kFloat);
    sum.source.shape = {kRows, kRow};
    sum.source.in_strides[0] = {kRow, 1};
    for (const auto& [what, axes] :
         {std::pair{"Sum", 3u}, std::pair{"Sum of rows of 1024", 2u}, std::pair{"Sum of columns", 1u}}) {
      sum.axes = axes;
      ShowCommand(what, 10, kBytes, "GB/s", sum, {x}, {z});
    }
    sum.source.shape = {64, 64, kElements / 4096};  // of images, channels first
    sum.source.in_strides[0] = DenseStrides(sum.source.shape);
    sum.axes = 5u;
    ShowCommand("Sum of all but channels", 10, kBytes, "GB/s", sum, {x}, {z});
    sum.source.program = IdentityProgram(DType::kBFloat16);
    sum.source.shape = {kRows, kRow};
    sum.source.in_strides[0] = {kRow, 1};
    for (const auto& [what, axes] :
         {std::pair{"Sum of rows of 1024, bfloat16", 2u}, std::pair{"Sum of columns, bfloat16", 1u}}) {
      sum.axes = axes;
      ShowCommand(what, 10, kBytes / 2, "GB/s", sum, {x}, {z});
    }
    SoftmaxDesc softmax;
    softmax.rows = kRows;
    softmax.cols = kRow;
    softmax.logits_row_stride = kRow;
    ShowCommand("Softmax of rows of 1024", 10, 2 * kBytes, "GB/s", softmax, {x}, {z});
    std::vector<int32_t> rows(kRows);
    std::mt19937 random(2);
    for (int32_t& row : rows) row = static_cast<int32_t>(random() % kRows);
    DieUnlessOk(stream_->CopyHostToDevice(y, rows.data(), rows.size() * 4), "indices");
    stream_->Wait();
    GatherDesc gather;
    gather.element_size = 4;
    gather.index_type = DType::kInt32;
    gather.inner = kRow;
    gather.num_indices = kRows;
    gather.dims = {kRows};
    ShowCommand("Gather of rows of 1024", 10, 2 * kBytes, "GB/s", gather, {x, y}, {z});
    RandomDesc numbers;
    numbers.n = kElements;
    ShowCommand("random numbers", 10, kBytes, "GB/s", numbers, {}, {z});
    Free();
  }

  // The axes of a dense array in another order.
  void Transpose(const std::string& what, size_t size, const Dims& shape, const std::vector<int>& order, const void* x,
                 void* z) {
    CopyStridedDesc desc;
    desc.element_size = size;
    const Dims strides = DenseStrides(shape);
    for (int axis : order) {
      desc.shape.push_back(shape[axis]);
      desc.src_strides.push_back(strides[axis]);
    }
    desc.dst_strides = DenseStrides(desc.shape);
    const double bytes = 2.0 * static_cast<double>(size) * static_cast<double>(shape.num_elements());
    ShowCommand("Transpose " + what, 10, bytes, "GB/s", desc, {x}, {z});
  }

  void Transposes() {
    constexpr int64_t kBytes = int64_t{1} << 28, kRow = 1024;
    void* const x = Random(kBytes);
    void* const z = Empty(kBytes);
    for (size_t size : {1, 2, 4, 8, 16}) {
      Transpose(errors::Concat("of rows of 1024, ", size, " bytes"), size,
                {kBytes / kRow / static_cast<int64_t>(size), kRow}, {1, 0}, x, z);
    }
    Transpose("of 1000 x 999 x 67, 4 bytes", 4, {67, 1000, 999}, {0, 2, 1}, x, z);
    Transpose("of 256 matrices of 512 x 512, 4 bytes", 4, {256, 512, 512}, {0, 2, 1}, x, z);
    Transpose("of 512 matrices of 512 x 512, 2 bytes", 2, {512, 512, 512}, {0, 2, 1}, x, z);
    Transpose("to channels first, 64 of 4 bytes", 4, {64, 128, 128, 64}, {0, 3, 1, 2}, x, z);
    Transpose("to channels last, 64 of 4 bytes", 4, {64, 64, 128, 128}, {0, 2, 3, 1}, x, z);
    Transpose("to channels first, 3 of 4 bytes", 4, {256, 224, 224, 3}, {0, 3, 1, 2}, x, z);
    Transpose("to channels last, 3 of 4 bytes", 4, {256, 3, 224, 224}, {0, 2, 3, 1}, x, z);
    Transpose("of heads, 64 of 2 bytes", 2, {32, 2048, 16, 64}, {0, 2, 1, 3}, x, z);
    Free();
  }

  void MatMul(const std::string& what, DType type, int64_t m, int64_t n, int64_t k, int64_t batch = 1,
              bool transpose_a = false, bool transpose_b = false) {
    MatMulDesc desc;
    desc.type = type;
    desc.m = m;
    desc.n = n;
    desc.k = k;
    desc.transpose_a = transpose_a;
    desc.transpose_b = transpose_b;
    if (batch > 1) {
      desc.batch = {batch};
      desc.a_batch_strides = {m * k};
      desc.b_batch_strides = {k * n};
    }
    const auto size = static_cast<int64_t>(SizeOf(type));
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k * batch);
    ShowCommand("MatMul " + what, flops > 1e10 ? 5 : 50, flops, "GFLOP/s", desc,
                {Random(batch * m * k * size), Random(batch * k * n * size)}, {Empty(batch * m * n * size)});
    Free();
  }

  void MatMuls() {
    for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf, DType::kDouble}) {
      MatMul(errors::Concat("4096, ", Name(type)), type, 4096, 4096, 4096);
    }
    MatMul("8192, bfloat16", DType::kBFloat16, 8192, 8192, 8192);
    SetTf32Query([] { return true; });
    MatMul("4096, float with TF32", DType::kFloat, 4096, 4096, 4096);
    MatMul("8192, float with TF32", DType::kFloat, 8192, 8192, 8192);
    SetTf32Query(nullptr);
    MatMul("4096, a transposed", DType::kFloat, 4096, 4096, 4096, 1, true);
    MatMul("4096, b transposed", DType::kFloat, 4096, 4096, 4096, 1, false, true);
    MatMul("256 of 128, bfloat16", DType::kBFloat16, 128, 128, 128, 256);
  }

  void Convolutions() {
    for (const auto& [type, tf32] :
         {std::pair{DType::kFloat, false}, std::pair{DType::kFloat, true}, std::pair{DType::kBFloat16, false}}) {
      if (tf32) SetTf32Query([] { return true; });
      for (const auto& [name, direction] :
           {std::pair{"", Direction::kForward}, std::pair{", gradient of images", Direction::kDataGradient},
            std::pair{", gradient of filters", Direction::kFilterGradient}}) {
        ConvolutionDesc desc;
        desc.direction = direction;
        desc.type = type;
        desc.batch = 64;
        desc.in_channels = desc.out_channels = 64;
        for (int i = 0; i < 2; ++i) {
          desc.input[i] = desc.output[i] = 56;
          desc.filter[i] = 3;
          desc.pad_before[i] = desc.pad_after[i] = 1;
        }
        const auto size = static_cast<int64_t>(SizeOf(type));
        const int64_t image = 64 * 56 * 56 * 64 * size, filter = 9 * 64 * 64 * size;
        const std::vector<const void*> in =
            direction == Direction::kFilterGradient ? std::vector<const void*>{Random(image), Random(image)}
            : direction == Direction::kForward      ? std::vector<const void*>{Random(image), Random(filter)}
                                                    : std::vector<const void*>{Random(filter), Random(image)};
        ShowCommand(
            errors::Concat("convolution 3x3 of 64 x 56 x 56 x 64, ", Name(type), tf32 ? " with TF32" : "", name), 5,
            2.0 * 64 * 56 * 56 * 64 * 64 * 9, "GFLOP/s", desc, in, {Empty(image)});
        Free();
      }
      SetTf32Query(nullptr);
    }
  }

  // The cost of a command beside its work.
  void Commands() {
    constexpr int kCommands = 100;
    constexpr int64_t kElements = 16;
    const Program* const add = SingleOpProgram(Opcode::kAdd, DType::kFloat);
    ElementwiseDesc desc;
    desc.program = add;
    desc.shape = {kElements};
    for (int i = 0; i < 2; ++i) desc.in_strides[i] = {1};
    void* const x = Random(4 * kElements);
    void* const y = Empty(4 * kElements);
    ShowCommand("Add of 16 elements, enqueued", 1000, 1e6, "thousands/s", desc, {x, x}, {y});
    auto list = std::make_shared<CommandList>();
    list->buffers.resize(2);
    for (Buffer& buffer : list->buffers) {
      buffer.kind = Buffer::Kind::kInput;
      buffer.bytes = 4 * kElements;
    }
    Command command;
    command.desc = desc;
    DieUnlessOk(Check(desc, &command.footprint), "a command");
    command.in.resize(2);
    command.out.resize(1);
    command.in[0].buffer = 0;
    command.in[1].buffer = 1;
    command.out[0].buffer = 1;
    list->commands.assign(kCommands, command);
    MemoryPlan plan;
    plan.offsets.assign(list->buffers.size(), MemoryPlan::kElsewhere);
    const std::unique_ptr<Executable> executable = device_.Prepare(list, plan);
    char* const addresses[] = {static_cast<char*>(x), static_cast<char*>(y)};
    int failed = -1;
    Show("the same, 100 in a list, one of them", 20, 1e6 * kCommands, "thousands/s",
         [&] { return executable->Run(*stream_, addresses, nullptr, &failed); });
    Free();
  }

 private:
  Device& device_;
  const std::unique_ptr<Stream> stream_;
  std::vector<void*> made_;
};

int Main() {
  const char* const chosen = std::getenv("XPU_TEST_BACKEND");
  const char* const name = chosen != nullptr && chosen[0] != '\0' ? chosen : "XPU_HOST";
  const Backend* const backend = FindBackend(name);
  if (backend == nullptr) DieUnlessOk(errors::NotFound("there is no backend ", name), "XPU_TEST_BACKEND");
  std::unique_ptr<Device> device;
  DieUnlessOk(backend->CreateDevice(0, BackendOptions(), &device), "the device");
  std::printf("%s, %s\n\n| what | time | rate |\n|---|---|---|\n", device->info().hardware_name.c_str(), name);
  Rates rates(*device);
  rates.Commands();
  rates.Copies();
  rates.Elements();
  rates.Transposes();
  rates.MatMuls();
  rates.Convolutions();
  return 0;
}

}  // namespace
}  // namespace xpu

int main() { return xpu::Main(); }
