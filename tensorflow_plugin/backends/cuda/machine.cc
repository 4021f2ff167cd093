#include "tensorflow_plugin/backends/cuda/machine.h"

#include <algorithm>
#include <utility>

#include "tensorflow_plugin/backends/cuda/peers.h"

namespace xpu::cuda {

Status Machine::Create(const Hardware& hardware, int64_t memory_limit, const std::string& device,
                       std::unique_ptr<Machine>* machine) {
  std::unique_ptr<Machine> made(new Machine(hardware));
  XPU_RETURN_IF_CUDA_ERROR(Cu().DevicePrimaryCtxRetain(&made->context_, hardware.id), "a context on " + hardware.name);
  AddPeer(hardware.id, made->context_);
  XPU_RETURN_IF_CUDA_ERROR(Cu().CtxSetCurrent(made->context_), "the context of " + hardware.name);
  XPU_RETURN_IF_CUDA_ERROR(Cu().StreamCreateWithPriority(&made->transfers_, kStreamNonBlocking, 0),
                           "a stream on " + hardware.name);
  made->clock_ = std::make_unique<Clock>(made->context_, made->transfers_);
  made->event_times_ =
      std::make_unique<gpu::EventTimes>([clock = made->clock_.get()](uint64_t* ns) { return clock->Read(ns); });
  made->memory_ = std::make_unique<Memory>(made->context_, memory_limit, device);
  made->compiler_ = std::make_unique<Compiler>(hardware, made->context_, gpu::BinaryCache::UsersFolder("cuda"));
  made->blas_ = std::make_unique<BlasMatmul>();
  made->convolutions_ = std::make_unique<DnnConvolution>();
  *machine = std::move(made);
  return OkStatus();
}

Machine::~Machine() {
  if (context_ == nullptr) return;
  (void)Cu().CtxSetCurrent(context_);
  event_times_ = nullptr;
  clock_ = nullptr;
  ForgetTables();
  convolutions_ = nullptr;
  blas_ = nullptr;
  compiler_ = nullptr;
  memory_ = nullptr;
  if (transfers_ != nullptr) (void)Cu().StreamDestroy(transfers_);
  RemovePeer(hardware_.id);
  (void)Cu().DevicePrimaryCtxRelease(hardware_.id);
}

Status Machine::RunAside(const std::function<Status(StreamHandle stream)>& enqueue) {
  std::lock_guard<std::mutex> lock(transfers_mutex_);
  XPU_RETURN_IF_CUDA_ERROR(Cu().CtxSetCurrent(context_), "the context of " + hardware_.name);
  XPU_RETURN_IF_ERROR(enqueue(transfers_));
  return ToStatus(Cu().StreamSynchronize(transfers_), "a command on the device");
}

Status Machine::Read(void* host_dst, const void* device_src, size_t size) {
  if (size == 0) return OkStatus();
  return RunAside([&](StreamHandle stream) {
    return ToStatus(Cu().MemcpyDtoHAsync(host_dst, AddressOf(device_src), size, stream), "a copy to the host");
  });
}

Status Machine::MakeTable(const std::vector<int64_t>& numbers, std::shared_ptr<const gpu::Table>* table) {
  const size_t bytes = numbers.size() * sizeof(int64_t);
  std::lock_guard<std::mutex> lock(transfers_mutex_);
  if (bytes > table_bytes_left_) {
    const size_t block = std::max(bytes, kTableBlock);
    table_block_ = AddressOf(memory_->AllocateUnused(block));
    table_bytes_left_ = table_block_ == 0 ? 0 : block;
    XPU_REQUIRE(table_block_ != 0, errors::ResourceExhausted("there is no device memory for a table of extents"));
  }
  auto made = std::make_shared<DeviceTable>();
  made->address = table_block_;
  table_block_ += bytes;
  table_bytes_left_ -= bytes;
  XPU_RETURN_IF_CUDA_ERROR(Cu().CtxSetCurrent(context_), "the context of " + hardware_.name);
  XPU_RETURN_IF_CUDA_ERROR(Cu().MemcpyHtoDAsync(made->address, numbers.data(), bytes, transfers_),
                           "a table of extents");
  XPU_RETURN_IF_CUDA_ERROR(Cu().StreamSynchronize(transfers_), "a table of extents");
  *table = std::move(made);
  return OkStatus();
}

}  // namespace xpu::cuda
