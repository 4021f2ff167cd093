// Launch asks before a backend sees a command: whether it makes sense, is supported and has its memory.
#include <memory>

#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {
namespace {

ElementwiseDesc Add(const Dims& shape, const Dims& a, const Dims& b) {
  ElementwiseDesc desc;
  desc.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
  desc.shape = shape;
  desc.in_strides[0] = a;
  desc.in_strides[1] = b;
  return desc;
}

// A device that counts what reaches it. No streams, no memory.
class CountingDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  void* Allocate(size_t) override { return nullptr; }
  void Deallocate(void*) override {}
  void* AllocateHost(size_t) override { return nullptr; }
  void DeallocateHost(void*) override {}
  AllocatorStats Stats() const override { return {}; }
  void ResetStats() override {}
  void MemoryUsage(int64_t*, int64_t*) const override {}
  std::unique_ptr<Stream> CreateStream(int) override { return nullptr; }
  std::unique_ptr<Event> CreateEvent() override { return nullptr; }
  std::unique_ptr<Timer> CreateTimer() override { return nullptr; }
  void Synchronize() override {}
  const Capabilities& capabilities() const override { return capabilities_; }
  Status Enqueue(Stream&, const ElementwiseDesc&, const Args&, const Footprint& footprint) override {
    ++commands;
    EXPECT_EQ(footprint.num_in, 2);
    return OkStatus();
  }
  Status Enqueue(Stream&, const RandomDesc&, const Args& args, const Footprint&) override {
    ++commands;
    workspace = args.workspace;
    return OkStatus();
  }
  int commands = 0;
  void* workspace = nullptr;

 private:
  // Elementwise, and random numbers with four bytes of scratch each.
  struct Some final : Capabilities {
    bool Supports(const ElementwiseDesc&) const override { return true; }
    bool Supports(const RandomDesc&) const override { return true; }
    bool Supports(const PoolDesc&) const override { return true; }
    int64_t WorkspaceBytes(const RandomDesc& desc) const override { return 4 * desc.n; }
  };
  const Some capabilities_;
  DeviceInfo info_;
};

TEST(Launch, GivesTheBackendOnlyWhatHasBeenChecked) {
  CountingDevice device;
  Stream& stream = *reinterpret_cast<Stream*>(&device);  // nobody looks at it
  float data[6] = {};
  Args args{{data, data}, {data}};
  ElementwiseDesc desc = Add({2, 3}, {3, 1}, {0, 1});
  EXPECT_TRUE(device.Launch(stream, desc, args).ok());
  EXPECT_EQ(device.commands, 1);
  args.in[1] = nullptr;
  EXPECT_EQ(device.Launch(stream, desc, args).message(), "input 1 of a command has elements but a null address");
  args.in[1] = data;
  args.out[0] = nullptr;
  EXPECT_EQ(device.Launch(stream, desc, args).message(), "output 0 of a command has elements but a null address");
  desc.shape = {2, 0};
  EXPECT_TRUE(device.Launch(stream, desc, args).ok());
  desc.shape = {2};
  EXPECT_EQ(device.Launch(stream, desc, args).code(), Code::kInvalidArgument);
  EXPECT_EQ(device.commands, 1);
  MatMulDesc product;
  product.m = product.n = product.k = 1;
  args.out[0] = data;
  EXPECT_EQ(device.Launch(stream, product, args).message(), "this XPU backend does not implement MatMul of float");
  product.m = 0;  // denied is denied, though there is nothing to do
  EXPECT_EQ(device.Launch(stream, product, args).code(), Code::kUnimplemented);
  PoolDesc pool;  // promised and not written
  pool.batch = pool.channels = 1;
  EXPECT_EQ(device.Launch(stream, pool, args).message(), "this XPU backend does not implement the primitive Pool");
}

// Lends from a buffer, and notes how much was asked for.
class Lender final : public WorkspaceSource {
 public:
  Status Allocate(int64_t bytes, void** address) override {
    asked = bytes;
    if (bytes > 100) return errors::ResourceExhausted("no more");
    *address = buffer;
    return OkStatus();
  }
  int64_t asked = 0;
  char buffer[100];
};

TEST(Launch, FindsTheWorkspaceThatACommandNeeds) {
  CountingDevice device;
  Stream& stream = *reinterpret_cast<Stream*>(&device);
  float data[6] = {};
  Args args{{}, {data}};
  RandomDesc desc;
  desc.n = 6;
  EXPECT_EQ(device.Launch(stream, desc, args).message(),
            "random uniform numbers of float needs a workspace of 24 bytes, there is none");
  Lender lender;
  args.workspace_source = &lender;
  EXPECT_TRUE(device.Launch(stream, desc, args).ok());
  EXPECT_EQ(lender.asked, 24);
  EXPECT_EQ(device.workspace, lender.buffer);
  char own[24];
  args.workspace = own;
  EXPECT_TRUE(device.Launch(stream, desc, args).ok());
  EXPECT_EQ(device.workspace, own);
  EXPECT_EQ(device.commands, 2);
  args.workspace = nullptr;
  desc.n = 30;
  EXPECT_EQ(device.Launch(stream, desc, args).code(), Code::kResourceExhausted);
  // Who needs none is not made to ask for it.
  lender.asked = 0;
  args.in[0] = args.in[1] = data;
  EXPECT_TRUE(device.Launch(stream, Add({2, 3}, {3, 1}, {0, 1}), args).ok());
  EXPECT_EQ(lender.asked, 0);
}

}  // namespace
}  // namespace xpu
