// Random numbers: stateless ops from seeds or from keys and counters, and the stateful ones. All are Philox, and the
// same numbers as the CPU's.
#include "tensorflow_plugin/ops/random/random.h"

#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// Scrambles seeds, so that it does not matter which part of one is strong.
constexpr uint64_t kScrambleKey = 0x02461e293ec8f720;

Status CheckSeed(const Tensor& seed) {
  XPU_REQUIRE(seed.IsVector() && seed.dim(0) == 2,
              errors::InvalidArgument("seed must have shape [2], not ", seed.ShapeString()));
  return OkStatus();
}

Philox FromSeeds(Construction& c) {
  uint64_t seed = static_cast<uint64_t>(c.Attr<int64_t>("seed"));
  uint64_t seed2 = static_cast<uint64_t>(c.Attr<int64_t>("seed2"));
  if (seed == 0 && seed2 == 0) {
    if (Construction::DeterminismRequired()) {
      c.Fail(errors::InvalidArgument("When determinism is enabled, random ops must have a seed specified."));
    }
    std::random_device device;
    seed = device() | static_cast<uint64_t>(device()) << 32;
    seed2 = device() | static_cast<uint64_t>(device()) << 32;
  }
  return Philox(seed, 0, seed2);
}

}  // namespace

Status StartOfSeed(const Tensor& seed, SequenceStart* start) {
  XPU_RETURN_IF_ERROR(CheckSeed(seed));
  std::vector<int64_t> values;
  XPU_RETURN_IF_ERROR(HostIntegers(seed, "seed", &values));
  Philox scrambler(kScrambleKey, static_cast<uint64_t>(values[0]), static_cast<uint64_t>(values[1]));
  uint32_t mix[4];
  scrambler.Next(mix);
  start->key = mix[0] | static_cast<uint64_t>(mix[1]) << 32;
  start->low = 0;
  start->high = mix[2] | static_cast<uint64_t>(mix[3]) << 32;
  return OkStatus();
}

Status CheckKey(const Tensor& key, const Tensor& counter, const Tensor& alg) {
  XPU_REQUIRE(alg.IsScalar(), errors::InvalidArgument("input 3 (0-based) must have shape [], not ", alg.ShapeString()));
  XPU_REQUIRE(key.IsVector() && key.dim(0) == 1,
              errors::InvalidArgument("key must have shape [1], not ", key.ShapeString(),
                                      ". (Note that batched keys are not supported yet.)"));
  XPU_REQUIRE(counter.IsVector() && counter.dim(0) >= 2,
              errors::InvalidArgument("counter must be a vector with length at least 2; got shape: ",
                                      counter.ShapeString(), ". (Note that batched counters are not supported yet.)"));
  const int32_t algorithm = alg.host<int32_t>()[0];
  XPU_REQUIRE(algorithm == kPhiloxAlgorithm || algorithm == kAutoSelectAlgorithm,
              errors::InvalidArgument("Unsupported algorithm id: ", algorithm));
  return OkStatus();
}

namespace {

// The start that they name.
Status StartOfKey(const Tensor& key, const Tensor& counter, const Tensor& alg, SequenceStart* start) {
  XPU_RETURN_IF_ERROR(CheckKey(key, counter, alg));
  start->key = key.host<uint64_t>()[0];
  start->low = counter.host<uint64_t>()[0];
  start->high = counter.host<uint64_t>()[1];
  return OkStatus();
}

}  // namespace

Sequence::Sequence(Construction& c) : generator_(FromSeeds(c)) {}

SequenceStart Sequence::Take(uint64_t groups) {
  std::lock_guard<std::mutex> lock(mutex_);
  const SequenceStart start = {generator_.key(), generator_.low(), generator_.high()};
  generator_.Skip(groups);
  return start;
}

Status ReadRange(Context& ctx, int first, RandomDesc* desc) {
  const Tensor minval = ctx.input(first), maxval = ctx.input(first + 1);
  XPU_REQUIRE(minval.IsScalar(), errors::InvalidArgument("minval must be 0-D, got shape ", minval.ShapeString()));
  XPU_REQUIRE(maxval.IsScalar(), errors::InvalidArgument("maxval must be 0-D, got shape ", maxval.ShapeString()));
  XPU_RETURN_IF_ERROR(HostInteger(minval, "minval", &desc->low));
  return HostInteger(maxval, "maxval", &desc->high);
}

Status CheckRange(const RandomDesc& desc) {
  XPU_REQUIRE(desc.low < desc.high, errors::InvalidArgument("Need minval < maxval, got ", desc.low, " >= ", desc.high));
  return OkStatus();
}

Status Draw(Context& ctx, const SequenceStart& start, RandomDesc desc, const Tensor& out) {
  desc.type = out.dtype();
  desc.n = out.num_elements();
  desc.key = start.key;
  desc.counter[0] = start.low;
  desc.counter[1] = start.high;
  return ctx.Launch(desc, {}, {out.mutable_data()});
}

namespace {

// inputs: shape, then seed or key, counter, alg; then minval, maxval for kUniformInt.
class StatelessKernel : public OpKernel {
 public:
  StatelessKernel(Construction&, RandomKind kind, bool from_key) : kind_(kind), from_key_(from_key) {}

  Status Compute(Context& ctx) override {
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(0), "shape", &shape));
    SequenceStart start;
    XPU_RETURN_IF_ERROR(from_key_ ? StartOfKey(ctx.input(1), ctx.input(2), ctx.input(3), &start)
                                  : StartOfSeed(ctx.input(1), &start));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    RandomDesc desc;
    desc.kind = kind_;
    if (kind_ == RandomKind::kUniformInt) {
      XPU_RETURN_IF_ERROR(ReadRange(ctx, from_key_ ? 4 : 2, &desc));
      XPU_RETURN_IF_ERROR(CheckRange(desc));
    }
    return Draw(ctx, start, desc, out);
  }

 private:
  const RandomKind kind_;
  const bool from_key_;
};

// The same from a key and a counter on the device. The host need not know them, and a cluster need not be captured for
// each.
class DeviceKeyKernel : public OpKernel {
 public:
  DeviceKeyKernel(Construction&, RandomKind kind) : kind_(kind) {}

  Status Compute(Context& ctx) override {
    const Tensor key = ctx.input(1), counter = ctx.input(2);
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(0), "shape", &shape));
    XPU_RETURN_IF_ERROR(CheckKey(key, counter, ctx.input(3)));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    RandomDesc desc;
    desc.kind = kind_;
    if (kind_ == RandomKind::kUniformInt) {
      XPU_RETURN_IF_ERROR(ReadRange(ctx, 4, &desc));
      XPU_RETURN_IF_ERROR(CheckRange(desc));
    }
    desc.start = RandomStart::kGiven;
    desc.type = out.dtype();
    desc.n = out.num_elements();
    return ctx.Launch(desc, {key.data(), counter.data()}, {out.mutable_data()});
  }

 private:
  const RandomKind kind_;
};

// StatelessRandomGetKeyCounter of a seed on the device. It makes four words of the scrambler: the first two are the
// key, and the others the counter's high half.
class DeviceSeedKernel : public OpKernel {
 public:
  explicit DeviceSeedKernel(Construction& c) : to_counter_(CastProgram(c.Attr<DType>("Tseed"), DType::kUint64)) {}

  Status Compute(Context& ctx) override {
    const Tensor seed = ctx.input(0);
    XPU_RETURN_IF_ERROR(CheckSeed(seed));
    Tensor key, counter;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {1}, &key));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {2}, &counter));
    Temporary start, words;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kUint64, {2}, &start));
    ElementwiseDesc cast;
    cast.program = to_counter_;
    SetFlat(2, 1, &cast);
    XPU_RETURN_IF_ERROR(ctx.Launch(cast, {seed.data()}, {start.data()}));
    RandomDesc scramble;
    scramble.kind = RandomKind::kUniformFullInt;
    scramble.type = DType::kUint32;
    scramble.n = 4;
    scramble.start = RandomStart::kCounterGiven;
    scramble.key = kScrambleKey;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kUint32, {4}, &words));
    XPU_RETURN_IF_ERROR(ctx.Launch(scramble, {start.data()}, {words.data()}));
    CopyStridedDesc half;
    half.element_size = sizeof(uint64_t);
    half.shape = {1};
    half.src_strides = half.dst_strides = {1};
    XPU_RETURN_IF_ERROR(ctx.Launch(half, {words.data()}, {key.mutable_data()}));
    XPU_RETURN_IF_ERROR(ctx.Zero(counter.mutable_data(), counter.bytes()));
    half.src_offset = half.dst_offset = 1;
    return ctx.Launch(half, {words.data()}, {counter.mutable_data()});
  }

 private:
  const Program* const to_counter_;
};

// StatelessRandomGetKeyCounter, StatelessRandomGetAlg, StatelessRandomGetKeyCounterAlg: on the host.
class SeedKernel : public OpKernel {
 public:
  SeedKernel(Construction&, bool key_counter, bool alg) : key_counter_(key_counter), alg_(alg) {}

  Status Compute(Context& ctx) override {
    Tensor out;
    if (key_counter_) {
      SequenceStart start;
      XPU_RETURN_IF_ERROR(StartOfSeed(ctx.input(0), &start));
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {1}, &out));
      static_cast<uint64_t*>(out.mutable_data())[0] = start.key;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {2}, &out));
      static_cast<uint64_t*>(out.mutable_data())[0] = start.low;
      static_cast<uint64_t*>(out.mutable_data())[1] = start.high;
    }
    if (alg_) {
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(key_counter_ ? 2 : 0, {}, &out));
      *static_cast<int32_t*>(out.mutable_data()) = kPhiloxAlgorithm;
    }
    return OkStatus();
  }

 private:
  const bool key_counter_, alg_;
};

// inputs: shape; minval, maxval for kUniformInt.
class StatefulKernel : public OpKernel {
 public:
  StatefulKernel(Construction& c, RandomKind kind) : kind_(kind), sequence_(c) {}

  Status Compute(Context& ctx) override {
    RandomDesc desc;
    desc.kind = kind_;
    desc.exact = false;  // nobody is promised these bits
    if (kind_ == RandomKind::kUniformInt) XPU_RETURN_IF_ERROR(ReadRange(ctx, 1, &desc));
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(0), "shape", &shape));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    if (kind_ == RandomKind::kUniformInt) XPU_RETURN_IF_ERROR(CheckRange(desc));
    return Draw(ctx, sequence_.Take(static_cast<uint64_t>(out.num_elements()) * kGroupsPerNumber), desc, out);
  }

 private:
  const RandomKind kind_;
  Sequence sequence_;
};

// Permutes along the first dimension: the order is drawn on the host, the rows are gathered on the device.
class ShuffleKernel : public OpKernel {
 public:
  explicit ShuffleKernel(Construction& c) : sequence_(c) {}

  Status Compute(Context& ctx) override {
    const Tensor value = ctx.input(0);
    if (value.num_elements() <= 1 || value.dim(0) <= 1) return ctx.ShareOutput(0, value, value.dims());
    const int64_t n = value.dim(0);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, value.dims(), &out));
    Temporary order;
    XPU_RETURN_IF_ERROR(Upload(ctx, DrawOrder(n), DType::kInt64, &order));
    GatherDesc desc;
    desc.element_size = SizeOf(value.dtype());
    desc.inner = value.num_elements() / n;
    desc.num_indices = n;
    desc.dims = {n};
    return ctx.Launch(desc, {value.data(), order.data()}, {out.mutable_data()});
  }

 private:
  // Fisher and Yates, one word for each exchange, from the front.
  std::vector<int64_t> DrawOrder(int64_t n) {
    const SequenceStart start = sequence_.Take(static_cast<uint64_t>(n - 1 + 3) / 4);
    Philox generator(start.key, start.low, start.high);
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), int64_t{0});
    uint32_t words[4];
    for (int64_t i = 0; i < n - 1; ++i) {
      if (i % 4 == 0) generator.Next(words);
      std::swap(order[i], order[i + words[i % 4] % static_cast<uint32_t>(n - i)]);
    }
    return order;
  }

  Sequence sequence_;
};

const TypeList kShortIntegers = {DType::kInt32, DType::kInt64};
const TypeList kWideIntegers = {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64};

}  // namespace

const std::vector<RandomFamily>& RandomFamilies() {
  static const auto* families = new std::vector<RandomFamily>{
      {"StatelessRandomUniform", "StatelessRandomUniformV2", "RandomUniform", "dtype", "StatefulUniform",
       RandomKind::kUniform, kFloatTypes, false},
      {"StatelessRandomNormal", "StatelessRandomNormalV2", "RandomStandardNormal", "dtype", "StatefulStandardNormalV2",
       RandomKind::kNormal, kFloatTypes, false},
      {"StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "TruncatedNormal", "dtype", "StatefulTruncatedNormal",
       RandomKind::kTruncatedNormal, kFloatTypes, false},
      {"StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "RandomUniformInt", "Tout", "StatefulUniformInt",
       RandomKind::kUniformInt, kShortIntegers, true},
      {"StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", nullptr, nullptr, "StatefulUniformFullInt",
       RandomKind::kUniformFullInt, kWideIntegers, false},
  };
  return *families;
}

void RegisterRandom(Registry& registry) {
  for (const RandomFamily& f : RandomFamilies()) {
    auto host = [&](std::vector<const char*> args) {
      if (f.has_range) args.insert(args.end(), {"minval", "maxval"});
      return args;
    };
    registry.Op(f.from_seed)
        .Traits(OpTrait::kDrawsFromStart)
        .Types("dtype", f.types)
        .Host(host({"shape", "seed"}))
        .Requires(needs::Random(f.kind, "dtype", true))
        .Kernel<StatelessKernel>(f.kind, false);
    registry.Op(f.from_key)
        .Traits(OpTrait::kDrawsFromStart)
        .Types("dtype", f.types)
        .Host(host({"shape", "key", "counter", "alg"}))
        .Requires(needs::Random(f.kind, "dtype", true))
        .Kernel<StatelessKernel>(f.kind, true);
    registry.Op(f.from_key)
        .Types("dtype", f.types)
        .Host(host({"shape", "alg"}))
        .Label(labels::kOnDevice)
        .Requires(needs::Random(f.kind, "dtype", true, RandomStart::kGiven))
        .Kernel<DeviceKeyKernel>(f.kind);
    if (f.stateful == nullptr) continue;
    registry.Op(f.stateful)
        .Types(f.stateful_type, f.types)
        .Host(host({"shape"}))
        .Requires(needs::Random(f.kind, f.stateful_type, false))
        .Kernel<StatefulKernel>(f.kind);
  }
  registry.Op("StatelessRandomGetKeyCounter")
      .Host({"seed", "key", "counter"})
      .OnHost()
      .Traits(OpTrait::kDrawsFromStart)
      .Kernel<SeedKernel>(true, false);
  registry.Op("StatelessRandomGetKeyCounter")
      .Types("Tseed", kShortIntegers)
      .Label(labels::kOnDevice)
      .Requires(needs::Random(RandomKind::kUniformFullInt, DType::kUint32, true, RandomStart::kCounterGiven))
      .Kernel<DeviceSeedKernel>();
  registry.Op("StatelessRandomGetAlg").Host({"alg"}).OnHost().Kernel<SeedKernel>(false, true);
  registry.Op("StatelessRandomGetKeyCounterAlg")
      .Host({"seed", "key", "counter", "alg"})
      .Traits(OpTrait::kDrawsFromStart)
      .OnHost()
      .Kernel<SeedKernel>(true, true);
  registry.Op("RandomShuffle")
      .Types("T", kAllTypes)
      .AllHostFor(DType::kInt32, {"value", "output"})
      .Requires(needs::Gather("T", DType::kInt64))
      .Kernel<ShuffleKernel>();
}

}  // namespace xpu
