// Convolutions of known networks on the GPU of this machine, by cuDNN and by the kernels of backends/gpu. It shows how
// long both take and how far they differ. It names cuDNN's engine, or says why there is none.
//
//   bazel run -c opt //tensorflow_plugin/backends/cuda/tests:convolutions
//
// Prints Markdown, and fails if results differ by more than rounding does.
#include "tensorflow_plugin/backends/tests/geometry/convolutions.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/backends/cuda/hardware.h"
#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/float_precision.h"

namespace xpu::cuda {
namespace {

void DieUnlessOk(const Status& status, const std::string& what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), status.message().c_str());
  std::exit(1);
}

struct Case {
  const char* name;
  std::vector<testing::Axis> axes;
  int64_t batch, in, out, groups = 1;
  bool has_epilogue = false;
};

// Relu of the sum of the result, a bias and another of the result's shape.
void AddEpilogue(ConvolutionDesc* desc) {
  ProgramBuilder builder;
  const auto c = builder.Input(desc->type), bias = builder.Input(desc->type), added = builder.Input(desc->type);
  const auto sum = builder.Apply(Opcode::kAdd, builder.Apply(Opcode::kAdd, c, bias), added);
  builder.Output(builder.Apply(Opcode::kMaximum, sum, builder.Const(desc->type, 0)));
  desc->epilogue.program = builder.Build();
  desc->epilogue.shape = {desc->batch * desc->output[0] * desc->output[1] * desc->output[2], desc->out_channels};
  for (int i : {0, 2}) desc->epilogue.in_strides[i] = {desc->out_channels, 1};
  desc->epilogue.in_strides[1] = {0, 1};
}

double ToDouble(DType type, const char* bytes, int64_t i) {
  switch (type) {
    case DType::kDouble: {
      double value;
      std::memcpy(&value, bytes + 8 * i, 8);
      return value;
    }
    case DType::kFloat: {
      float value;
      std::memcpy(&value, bytes + 4 * i, 4);
      return value;
    }
    default: {
      uint16_t half;
      std::memcpy(&half, bytes + 2 * i, 2);
      if (type == DType::kBFloat16) {
        const uint32_t bits = static_cast<uint32_t>(half) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        return value;
      }
      const int exponent = half >> 10 & 31, mantissa = half & 1023;
      const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                               : exponent == 31 ? (mantissa == 0 ? HUGE_VAL : NAN)
                                                : std::ldexp(1024 + mantissa, exponent - 25);
      return (half & 0x8000) != 0 ? -magnitude : magnitude;
    }
  }
}

// Small whole numbers, exact in every type. Sums of their products are exact in float.
void FromInt(DType type, int value, char* bytes, int64_t i) {
  switch (type) {
    case DType::kDouble: {
      const double number = value;
      return static_cast<void>(std::memcpy(bytes + 8 * i, &number, 8));
    }
    case DType::kFloat: {
      const auto number = static_cast<float>(value);
      return static_cast<void>(std::memcpy(bytes + 4 * i, &number, 4));
    }
    default: {
      static constexpr uint16_t kHalf[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
      static constexpr uint16_t kBFloat16[] = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};
      const uint16_t number = (type == DType::kHalf ? kHalf : kBFloat16)[value + 2];
      std::memcpy(bytes + 2 * i, &number, 2);
    }
  }
}

// Makes the first number a NaN, which results must not lose.
void FromNan(DType type, char* bytes) {
  const double as_double = NAN;
  const float as_float = NAN;
  const uint16_t as_half = 0x7fff;  // of bfloat16, too
  const void* const number = type == DType::kDouble  ? static_cast<const void*>(&as_double)
                             : type == DType::kFloat ? static_cast<const void*>(&as_float)
                                                     : &as_half;
  std::memcpy(bytes, number, SizeOf(type));
}

class Comparison {
 public:
  Comparison() {
    if (UsedHardware().empty()) DieUnlessOk(errors::NotFound(WhyNone()), "the device");
    const Hardware& hardware = UsedHardware()[0];
    DieUnlessOk(Machine::Create(hardware, hardware.memory_bytes / 2, "XPU:0", &machine_), "the device");
    DieUnlessOk(Queue::Create(*machine_, 0, &queue_), "a stream");
    std::string why;
    const Cudnn* const dnn = FindCudnn(&why);
    std::printf("%s, cuDNN %s\n\n", hardware.name.c_str(),
                dnn == nullptr ? ("is absent: " + why).c_str() : std::to_string(dnn->GetVersion()).c_str());
    std::printf("| what | type | cuDNN, ms | TFLOP/s | kernels, ms | worst difference | how |\n");
    std::printf("|---|---|---|---|---|---|---|\n");
  }

  // True if cuDNN computes it, and both give the same but for one rounding.
  bool Compare(const Case& of, DType type, ChannelOrder order, Direction direction, int64_t most_images,
               bool with_kernels) {
    ConvolutionDesc desc = testing::ConvolutionOf(of.axes, of.batch, of.in, of.out, of.groups);
    desc.batch = std::min(desc.batch, most_images);
    desc.type = type;
    desc.order = order;
    desc.direction = direction;
    if (of.has_epilogue) AddEpilogue(&desc);
    const auto pixels = [](const int64_t* extents) { return extents[0] * extents[1] * extents[2]; };
    const int64_t images = desc.batch * desc.in_channels * pixels(desc.input);
    const int64_t filter = desc.in_channels / desc.groups * desc.out_channels * pixels(desc.filter);
    const int64_t results = desc.batch * desc.out_channels * pixels(desc.output);
    const int64_t sizes[3] = {direction == Direction::kDataGradient ? filter : images,
                              direction == Direction::kForward ? filter : results,
                              direction == Direction::kForward        ? results
                              : direction == Direction::kDataGradient ? images
                                                                      : filter};
    const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements) * SizeOf(type); };
    Args args{};
    uint64_t random = 1;
    const auto next = [&] {  // -2 to 2
      random = random * 6364136223846793005u + 1442695040888963407u;
      return static_cast<int>((random >> 33) % 5) - 2;
    };
    std::vector<void*> made;
    const auto allocate = [&](size_t size) {
      void* const address = machine_->memory().Allocate(size);
      if (address == nullptr) DieUnlessOk(errors::ResourceExhausted(size, " bytes"), "allocation");
      made.push_back(address);
      return address;
    };
    for (int i = 0; i < (of.has_epilogue ? 4 : 2); ++i) {
      const int64_t size = i < 2 ? sizes[i] : i == 2 ? desc.out_channels : results;
      std::vector<char> numbers(bytes(size));
      for (int64_t j = 0; j < size; ++j) FromInt(type, next(), numbers.data(), j);
      if (of.has_epilogue && i == 0) FromNan(type, numbers.data());
      void* const address = allocate(numbers.size());
      DieUnlessOk(queue_->CopyHostToDevice(address, numbers.data(), numbers.size()), "a copy");
      queue_->Wait();
      args.in[i] = address;
    }
    void* const by_kernels = allocate(bytes(sizes[2]));
    args.out[0] = allocate(bytes(sizes[2]));
    DieUnlessOk(queue_->Memset(args.out[0], 0xff, bytes(sizes[2])), "a fill");
    if (const int64_t workspace = gpu::WorkspaceBytes(desc); workspace > 0) {
      args.workspace = allocate(static_cast<size_t>(workspace));
    }
    std::string how;
    bool enqueued = false;
    const auto by_dnn = [&] {
      return machine_->convolutions().Enqueue(*machine_, *queue_, desc, args, &enqueued, &how);
    };
    const std::string what = errors::Concat(of.name,
                                            direction == Direction::kForward        ? ""
                                            : direction == Direction::kDataGradient ? ", to images"
                                                                                    : ", to filter",
                                            order == ChannelOrder::kLast ? "" : ", channels first");
    const Status status = by_dnn();
    queue_->Wait();
    Status ran = queue_->TakeStatus();
    double dnn_ms = NAN, kernels_ms = NAN, worst = NAN;
    if (!status.ok() || !ran.ok()) {
      how = (status.ok() ? ran : status).message();
    } else if (enqueued) {
      std::vector<char> seen(bytes(sizes[2])), wanted(seen.size());
      DieUnlessOk(queue_->Read(seen.data(), args.out[0], seen.size()), "a copy");
      dnn_ms = Time(by_dnn);
      if (with_kernels) {
        args.out[0] = by_kernels;
        Footprint footprint;
        DieUnlessOk(Check(desc, &footprint), "a descriptor");
        const auto run = [&] { return gpu::Enqueue(*machine_, *queue_, desc, args, footprint); };
        DieUnlessOk(run(), "kernels");
        DieUnlessOk(queue_->Read(wanted.data(), by_kernels, wanted.size()), "a copy");
        kernels_ms = Time(run);
        worst = 0;
        for (int64_t i = 0; i < sizes[2]; ++i) {
          const double a = ToDouble(type, seen.data(), i), b = ToDouble(type, wanted.data(), i);
          if (std::isnan(a) && std::isnan(b)) continue;
          const double off = std::abs(a - b) / std::max(1.0, std::abs(b));
          worst = off <= worst ? worst : off;  // a NaN is the worst
          if (std::isnan(off)) break;
        }
      }
    }
    const double flops = 2.0 * static_cast<double>(results) * static_cast<double>(desc.in_channels / desc.groups) *
                         static_cast<double>(pixels(desc.filter));
    // One rounding to the type, of sums that are exact.
    const double allowed = SizeOf(type) == 2 ? (type == DType::kHalf ? 1e-3 : 8e-3) : 1e-6;
    const bool right = !enqueued || !with_kernels || worst <= allowed;
    std::printf("| %s | %s%s | %.3f | %.1f | %.3f | %.2g%s | %s |\n", what.c_str(), Name(type),
                type == DType::kFloat && AllowsTf32() ? ", TF32" : "", dnn_ms, flops / dnn_ms / 1e9, kernels_ms, worst,
                right ? "" : " WRONG", how.c_str());
    std::fflush(stdout);
    for (void* address : made) machine_->memory().Deallocate(address);
    return right && enqueued;
  }

 private:
  double Time(const std::function<Status()>& run) {
    using Clock = std::chrono::steady_clock;
    double least = 1e9;
    for (int round = 0; round < 3; ++round) {
      queue_->Wait();
      const Clock::time_point begin = Clock::now();
      constexpr int kTimes = 5;
      for (int i = 0; i < kTimes; ++i) DieUnlessOk(run(), "a run");
      queue_->Wait();
      least = std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / kTimes);
    }
    return least;
  }

  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Queue> queue_;
};

int Main() {
  const Case cases[] = {
      {"ResNet 7x7/2", {{230, 7, 2}, {230, 7, 2}}, 64, 3, 64},
      {"ResNet 3x3 of 56", {{56, 3, 1, 1, 1, 1}, {56, 3, 1, 1, 1, 1}}, 64, 64, 64},
      {"ResNet 3x3 of 28", {{28, 3, 1, 1, 1, 1}, {28, 3, 1, 1, 1, 1}}, 64, 128, 128},
      {"ResNet 3x3 of 7", {{7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}}, 64, 512, 512},
      {"ResNet 1x1/2", {{56, 1, 2}, {56, 1, 2}}, 64, 256, 512},
      {"3x3/2, SAME", {{56, 3, 2, 1, 0, 1}, {56, 3, 2, 1, 0, 1}}, 64, 64, 128},
      {"depthwise 3x3", {{56, 3, 1, 1, 1, 1}, {56, 3, 1, 1, 1, 1}}, 64, 128, 128, 128},
      {"32 groups", {{28, 3, 1, 1, 1, 1}, {28, 3, 1, 1, 1, 1}}, 64, 256, 256, 32},
      {"dilated", {{28, 3, 1, 2, 2, 2}, {28, 3, 1, 2, 2, 2}}, 64, 64, 64},
      {"3-D", {{16, 3, 1, 1, 1, 1}, {32, 3, 1, 1, 1, 1}, {32, 3, 1, 1, 1, 1}}, 4, 32, 64},
      {"1-D", {{4000, 9, 1, 1, 4, 4}}, 32, 80, 256},
      {"odd", {{13, 4, 3, 1, 2, 1}, {11, 2, 1, 1, 0, 1}}, 3, 5, 7},
      {"3x3 of 56 with Relu", {{56, 3, 1, 1, 1, 1}, {56, 3, 1, 1, 1, 1}}, 64, 64, 64, 1, true},
      {"7x7/2 with Relu", {{230, 7, 2}, {230, 7, 2}}, 64, 3, 64, 1, true},
  };
  const Direction directions[] = {Direction::kForward, Direction::kDataGradient, Direction::kFilterGradient};
  Comparison comparison;
  int missing = 0;
  constexpr int64_t kAll = 1 << 20, kFew = 4;
  const auto with_tf32 = [](const auto& compare) {
    SetTf32Query([] { return true; });
    compare();
    SetTf32Query(nullptr);
  };
  // First how fast they are, then whether the rest is right.
  for (int64_t images : {kAll, kFew}) {
    for (const Case& of : cases) {
      for (Direction direction : directions) {
        if (of.has_epilogue && direction != Direction::kForward) continue;
        const auto compare = [&](DType type, ChannelOrder order, bool with_kernels) {
          missing += !comparison.Compare(of, type, order, direction, images, with_kernels);
        };
        with_tf32([&] { compare(DType::kFloat, ChannelOrder::kLast, images == kFew || of.has_epilogue); });
        const ChannelOrder first = of.has_epilogue ? ChannelOrder::kLast : ChannelOrder::kFirst;
        compare(DType::kHalf, first, images == kFew);
        if (images == kAll) {
          compare(DType::kBFloat16, ChannelOrder::kLast, true);
          compare(DType::kFloat, ChannelOrder::kLast, true);
        } else {
          compare(DType::kFloat, first, true);
          compare(DType::kDouble, ChannelOrder::kLast, true);
        }
      }
    }
  }
  std::printf("\n%d without cuDNN, or wrong\n", missing);
  return missing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace xpu::cuda

int main() { return xpu::cuda::Main(); }
