// Products by cuBLASLt, on a stand-in that computes them: which epilogues it applies, and to what.
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/blas/cublaslt.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_ins.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cuda {
namespace {

using Reg = ProgramBuilder::Reg;
using Numbers = std::vector<float>;

class Blas : public OnStandIns {
 protected:
  void SetUp() override {
    OnStandIns::SetUp();
    Function<StandInProducts()>("StandInTakeProducts")();
  }
  void TearDown() override {
    Function<void(bool)>("StandInReluDropsNan")(false);
    OnStandIns::TearDown();
  }

  // The result of a product. Kernels do nothing on the stand-in.
  Numbers Run(const MatMulDesc& desc, const std::vector<Numbers>& inputs) {
    Args args{};
    std::vector<void*> blocks;
    const auto place = [&](const Numbers& numbers) {
      blocks.push_back(device_->Allocate(numbers.size() * sizeof(float)));
      EXPECT_TRUE(stream_->CopyHostToDevice(blocks.back(), numbers.data(), numbers.size() * sizeof(float)).ok());
      return blocks.back();
    };
    for (size_t i = 0; i < inputs.size(); ++i) args.in[i] = place(inputs[i]);
    Numbers out(static_cast<size_t>(desc.m * desc.n * desc.batch.num_elements()), -1);
    args.out[0] = place(out);
    const Status status = device_->Launch(*stream_, desc, args);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(stream_->CopyDeviceToHost(out.data(), args.out[0], out.size() * sizeof(float)).ok());
    stream_->Wait();
    for (void* block : blocks) device_->Deallocate(block);
    return out;
  }
  StandInProducts Products() { return Function<StandInProducts()>("StandInTakeProducts")(); }
};

const Numbers kA = {1, 2, 3, 4, 5, 6}, kB = {1, -1, 0, 2, 1, -3};  // the product is {4, -6, 10, -12}

MatMulDesc Product(const Program* program = nullptr) {
  MatMulDesc desc;
  desc.m = desc.n = 2;
  desc.k = 3;
  desc.epilogue.program = program;
  if (program == nullptr) return desc;
  desc.epilogue.shape = {2, 2};
  desc.epilogue.in_strides[0] = {2, 1};
  return desc;
}

const Program* Relu(ProgramBuilder& builder, Reg x) {
  builder.Output(builder.Apply(Opcode::kMaximum, x, builder.Const(x.type, 0)));
  return builder.Build();
}

TEST_F(Blas, AProductIsComputed) {
  EXPECT_EQ(Run(Product(), {kA, kB}), Numbers({4, -6, 10, -12}));
  EXPECT_EQ(Products().count, 1);
  EXPECT_TRUE(Launches().empty());
}

TEST_F(Blas, BiasAndReluAreTheLibrarys) {
  ProgramBuilder builder;
  const Reg c = builder.Input(DType::kFloat), bias = builder.Input(DType::kFloat);
  MatMulDesc desc = Product(Relu(builder, builder.Apply(Opcode::kAdd, bias, c)));
  desc.epilogue.in_strides[1] = {0, 1};
  EXPECT_EQ(Run(desc, {kA, kB, {-5, 7}}), Numbers({0, 1, 5, 0}));
  const StandInProducts products = Products();
  EXPECT_EQ(products.count, 2);  // one of NaN, to see what becomes of it
  EXPECT_EQ(products.epilogue, kEpilogueBias | kEpilogueRelu);
  EXPECT_TRUE(Launches().empty());
  // Another bias, at another address, with the same plan. NaN stays.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Numbers seen = Run(desc, {kA, kB, {-3, nan}});
  EXPECT_EQ(Numbers({seen[0], seen[2]}), Numbers({1, 7}));
  EXPECT_TRUE(std::isnan(seen[1]) && std::isnan(seen[3]));
  EXPECT_EQ(Products().count, 1);
}

// The product of NaN runs beside the streams: not in memory that was freed, but that a stream's commands will read.
TEST_F(Blas, NanIsInNoMemoryThatAStreamUses) {
  ProgramBuilder builder;
  MatMulDesc desc = Product(Relu(builder, builder.Input(DType::kFloat)));
  desc.m = desc.n = desc.k = 64;
  desc.epilogue.shape = {64, 64};
  desc.epilogue.in_strides[0] = {64, 1};
  constexpr size_t kBytes = 64 * 64 * sizeof(float);
  const std::vector<unsigned char> ones(kBytes, 1);
  std::vector<unsigned char> seen[3];
  void* blocks[6];
  for (void*& block : blocks) block = device_->Allocate(kBytes);
  std::atomic<bool> begun{false}, open{false};
  for (void* block : blocks) ASSERT_TRUE(stream_->Memset(block, 1, kBytes).ok());
  stream_->HostCallback([&] {
    begun = true;
    while (!open) std::this_thread::yield();
    return OkStatus();
  });
  while (!begun) std::this_thread::yield();
  for (int i = 3; i < 6; ++i) {
    seen[i - 3].resize(kBytes);
    ASSERT_TRUE(stream_->CopyDeviceToHost(seen[i - 3].data(), blocks[i], kBytes).ok());
    device_->Deallocate(blocks[i]);
  }
  Args args{};
  args.in[0] = blocks[0];
  args.in[1] = blocks[1];
  args.out[0] = blocks[2];
  const Status status = device_->Launch(*stream_, desc, args);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(Products().count, 1);  // of NaN
  open = true;
  stream_->Wait();
  for (const auto& bytes : seen) EXPECT_TRUE(bytes == ones);
  for (int i = 0; i < 3; ++i) device_->Deallocate(blocks[i]);
}

TEST_F(Blas, AMatrixIsAdded) {
  ProgramBuilder builder;
  const Reg c = builder.Input(DType::kFloat), bias = builder.Input(DType::kFloat), x = builder.Input(DType::kFloat);
  builder.Output(builder.Apply(Opcode::kAdd, builder.Apply(Opcode::kAdd, c, bias), x));
  MatMulDesc desc = Product(builder.Build());
  desc.batch = {2};
  desc.b_batch_strides = {0};
  desc.a_batch_strides = {6};
  desc.epilogue.shape = {4, 2};
  desc.epilogue.in_strides[0] = desc.epilogue.in_strides[2] = {2, 1};
  desc.epilogue.in_strides[1] = {0, 1};
  Numbers both = kA;
  for (float number : kA) both.push_back(-number);
  const Numbers added = {10, 20, 30, 40, 50, 60, 70, 80};
  EXPECT_EQ(Run(desc, {both, kB, {1, 2}, added}), Numbers({15, 16, 41, 30, 47, 68, 61, 94}));
  const StandInProducts products = Products();
  EXPECT_EQ(products.epilogue, kEpilogueBias);
  EXPECT_EQ(products.beta, 1);
  EXPECT_TRUE(Launches().empty());
}

// The result is the product itself: the kernel does nothing.
TEST_F(Blas, OtherEpiloguesAreKernels) {
  const auto is_kernel = [&](const MatMulDesc& desc, const std::vector<Numbers>& inputs, const char* what) {
    EXPECT_EQ(Run(desc, inputs), Numbers({4, -6, 10, -12})) << what;  // as the kernel finds it
    const StandInProducts products = Products();
    EXPECT_EQ(products.epilogue, kEpilogueNone) << what;
    EXPECT_EQ(products.beta, 0) << what;
    EXPECT_EQ(Launches().size(), 1u) << what;
    Function<void()>("StandInReset")();
  };
  const auto with = [](Opcode op, const Dims& strides, double bound, bool twice = false) {
    ProgramBuilder builder;
    const Reg c = builder.Input(DType::kFloat), x = builder.Input(DType::kFloat);
    const Reg sum = builder.Apply(op, c, twice ? c : x);
    builder.Output(builder.Apply(Opcode::kMaximum, sum, builder.Const(DType::kFloat, bound)));
    MatMulDesc desc = Product(builder.Build());
    desc.epilogue.in_strides[1] = strides;
    return desc;
  };
  is_kernel(with(Opcode::kSub, {0, 1}, 0), {kA, kB, {1, 2}}, "a difference");
  is_kernel(with(Opcode::kAdd, {1, 0}, 0), {kA, kB, {1, 2}}, "a number for each row");
  is_kernel(with(Opcode::kAdd, {0, 0}, 0), {kA, kB, {1}}, "one number");
  is_kernel(with(Opcode::kAdd, {1, 2}, 0), {kA, kB, {1, 2, 3, 4}}, "a transposed matrix");
  is_kernel(with(Opcode::kAdd, {0, 1}, 1), {kA, kB, {1, 2}}, "another bound");
  is_kernel(with(Opcode::kAdd, {0, 1}, 0, /*twice=*/true), {kA, kB, {1, 2}}, "the product twice");
}

MatMulDesc Product8(int64_t m, int64_t n, int64_t k, bool transpose_b) {
  MatMulDesc desc;
  desc.type = desc.b_type = DType::kInt8;
  desc.c_type = DType::kInt32;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  desc.transpose_b = transpose_b;
  return desc;
}

TEST_F(Blas, ProductsOf8BitIntegersAreExact) {
  constexpr int64_t kRows = 3, kColumns = 8, kTerms = 12;
  std::vector<int8_t> a(kRows * kTerms), b(kColumns * kTerms);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int8_t>(i * 37);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int8_t>(i * 91 + 5);
  std::vector<int32_t> out(kRows * kColumns), expected(out.size(), 0);
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t l = 0; l < kTerms; ++l) expected[i] += a[i / kColumns * kTerms + l] * b[i % kColumns * kTerms + l];
  }
  Args args{};
  void* const of_a = device_->Allocate(a.size());
  void* const of_b = device_->Allocate(b.size());
  ASSERT_TRUE(stream_->CopyHostToDevice(of_a, a.data(), a.size()).ok());
  ASSERT_TRUE(stream_->CopyHostToDevice(of_b, b.data(), b.size()).ok());
  args.in[0] = of_a;
  args.in[1] = of_b;
  args.out[0] = device_->Allocate(out.size() * sizeof(int32_t));
  ASSERT_TRUE(device_->Launch(*stream_, Product8(kRows, kColumns, kTerms, /*transpose_b=*/true), args).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(out.data(), args.out[0], out.size() * sizeof(int32_t)).ok());
  stream_->Wait();
  EXPECT_EQ(out, expected);
  EXPECT_EQ(Products().count, 1);
  EXPECT_TRUE(Launches().empty());
}

// A kernel turns b, or computes the product.
TEST_F(Blas, SomeProductsOf8BitIntegersAreTheLibrarys) {
  Args args{};
  args.in[0] = device_->Allocate(1 << 16);
  args.in[1] = device_->Allocate(1 << 16);
  args.out[0] = device_->Allocate(1 << 18);
  const auto count = [&](const MatMulDesc& desc) {
    Function<void()>("StandInReset")();
    const Status status = device_->Launch(*stream_, desc, args);
    EXPECT_TRUE(status.ok()) << status.message();
    stream_->Wait();
    EXPECT_TRUE(stream_->TakeStatus().ok());
    return std::pair(Products().count, Launches().size());
  };
  using Counts = std::pair<int, size_t>;
  EXPECT_EQ(count(Product8(32, 16, 24, false)), Counts(1, 1));
  EXPECT_EQ(count(Product8(31, 16, 24, false)), Counts(0, 1)) << "few rows";
  EXPECT_EQ(count(Product8(31, 16, 24, true)), Counts(1, 0));
  EXPECT_EQ(count(Product8(32, 18, 24, true)), Counts(0, 1)) << "columns";
  EXPECT_EQ(count(Product8(32, 16, 26, true)), Counts(0, 1)) << "terms";
  MatMulDesc desc = Product8(32, 16, 24, true);
  desc.lda = 26;
  EXPECT_EQ(count(desc), Counts(0, 1)) << "rows that begin within a word";
  desc = Product8(32, 16, 24, true);
  desc.transpose_a = true;
  EXPECT_EQ(count(desc), Counts(0, 1)) << "a transposed";
  desc = Product8(32, 16, 24, true);
  desc.batch = {2};
  desc.a_batch_strides = desc.b_batch_strides = {32 * 24};
  EXPECT_EQ(count(desc), Counts(0, 1)) << "a batch";
  desc = Product8(32, 16, 24, true);
  desc.b_type = DType::kUint8;
  EXPECT_EQ(count(desc), Counts(0, 1)) << "b without a sign";
  desc.b_type = desc.c_type = DType::kInvalid;
  EXPECT_EQ(count(desc), Counts(0, 1)) << "sums of 8 bits";
  args.in[0] = static_cast<const char*>(args.in[0]) + 2;
  EXPECT_EQ(count(Product8(32, 16, 24, true)), Counts(0, 1)) << "a matrix that begins within a word";
}

// Another thread's would write its copy of b where this one's is.
TEST_F(Blas, ThreadsTakeTurnsWithScratchMemory) {
  constexpr int kTimes = 1000;
  std::atomic<int> begun{0};
  Args args{};
  args.in[0] = device_->Allocate(1 << 16);
  args.in[1] = device_->Allocate(1 << 16);
  args.out[0] = device_->Allocate(1 << 18);
  const auto run = [&] {
    ++begun;
    while (begun < 2) std::this_thread::yield();
    for (int i = 0; i < kTimes; ++i) {
      EXPECT_TRUE(device_->Launch(*stream_, Product8(32, 16, 24, /*transpose_b=*/false), args).ok());
    }
  };
  begun = 1;
  run();
  stream_->Wait();
  begun = 0;
  Function<void()>("StandInReset")();
  (void)Products();
  std::thread other(run);
  run();
  other.join();
  stream_->Wait();
  const StandInProducts products = Products();
  EXPECT_EQ(products.count, 2 * kTimes);
  EXPECT_EQ(products.apart, 0);
}

TEST_F(Blas, AReluThatDropsNanIsNotUsed) {
  Function<void(bool)>("StandInReluDropsNan")(true);
  ProgramBuilder builder;
  const MatMulDesc desc = Product(Relu(builder, builder.Input(DType::kFloat)));
  EXPECT_EQ(Run(desc, {kA, kB}), Numbers({4, -6, 10, -12}));
  EXPECT_EQ(Products().epilogue, kEpilogueNone);
  EXPECT_EQ(Launches().size(), 1u);
}

}  // namespace
}  // namespace xpu::cuda
