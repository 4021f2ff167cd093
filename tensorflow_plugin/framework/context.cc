#include "tensorflow_plugin/framework/context.h"

#include <algorithm>
#include <cstring>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/compute_scope.h"
#include "tensorflow_plugin/framework/native.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu {
namespace {

Device* host_executor = nullptr;
thread_local ScopedStream* scoped_stream = nullptr;

// One status object per thread: creating one costs an allocation per op.
TF_Status* ThreadStatus() {
  struct Holder {
    TF_Status* status = TF_NewStatus();
    ~Holder() { TF_DeleteStatus(status); }
  };
  thread_local Holder holder;
  return holder.status;
}

// Each thread that runs host kernels has a stream of its own, so that they do not wait for each other.
Stream* HostStream() {
  thread_local std::unique_ptr<Stream> stream = [] {
    const trace::ScopedLines of_host("XPU's ops in host memory", "a thread");
    return host_executor->CreateStream();
  }();
  return stream.get();
}

}  // namespace

void SetHostExecutor(Device* device) { host_executor = device; }

ScopedStream::ScopedStream(Device& device, Stream& stream) : device_(device), stream_(stream), outer_(scoped_stream) {
  scoped_stream = this;
}
ScopedStream::~ScopedStream() { scoped_stream = outer_; }

Tensor::Tensor(const void* native) : native_(native) {
  const auto& t = *static_cast<const tensorflow::Tensor*>(native);
  const tensorflow::TensorShape& shape = t.shape();
  const int rank = shape.dims();
  for (int i = 0; i < rank; ++i) dims_.push_back(shape.dim_size(i));
  num_elements_ = shape.num_elements();
  dtype_ = FastFromTf(t.dtype());
  data_ = t.data();
}

namespace {
const tensorflow::OpKernel& KernelOf(TF_OpKernelContext* native) {
  return reinterpret_cast<tensorflow::OpKernelContext*>(native)->op_kernel();
}
}  // namespace

ComputeScope::ComputeScope(TF_OpKernelContext* native)
    : native_(native), op_(KernelOf(native).name(), KernelOf(native).type_string()) {}

void ComputeScope::Fail(const Status& status) {
  reinterpret_cast<tensorflow::OpKernelContext*>(native_)->CtxFailure(ToNative(status));
}

Temporary::Temporary() = default;
Temporary::~Temporary() = default;

int Context::num_inputs() const { return Native(*this)->num_inputs(); }
int Context::num_outputs() const { return Native(*this)->num_outputs(); }
Tensor Context::input(int i) const { return Tensor(&Native(*this)->input(i)); }
DType Context::input_dtype(int i) const { return FastFromTf(Native(*this)->input_dtype(i)); }
DType Context::output_dtype(int i) const { return FastFromTf(Native(*this)->expected_output_dtype(i)); }

namespace {
Status Allocate(tensorflow::OpKernelContext* ctx, int i, const tensorflow::TensorShape& shape, Tensor* out) {
  tensorflow::Tensor* t = nullptr;
  XPU_RETURN_IF_ERROR(FromNative(ctx->allocate_output(i, shape, &t)));
  *out = Tensor(t);
  return OkStatus();
}

Status Forward(tensorflow::OpKernelContext* ctx, std::initializer_list<int> candidates, int i,
               const tensorflow::TensorShape& shape, Tensor* out) {
  tensorflow::Tensor* t = nullptr;
  XPU_RETURN_IF_ERROR(FromNative(ctx->forward_input_or_allocate_output(
      absl::Span<const int>(candidates.begin(), candidates.size()), i, shape, &t)));
  *out = Tensor(t);
  return OkStatus();
}

// TensorFlow's message about memory that does not suffice names a shape; this adds what one can reckon with.
Status WithNumbers(Context& context, const Status& status, DType dtype, const tensorflow::TensorShape& shape) {
  if (status.code() != Code::kResourceExhausted || context.on_host()) return status;
  const SP_Stream stream = TF_GetStream(context.native(), ThreadStatus());
  if (stream == nullptr) return status;
  const AllocatorStats of_device = stream->device->Stats();
  int64_t in_use = of_device.bytes_in_use, limit = of_device.bytes_limit;
  // TensorFlow's best-fit allocator holds more of the device than tensors use; the plugin's own counts tensors.
  const auto of_allocator = Native(context)->get_allocator(tensorflow::AllocatorAttributes())->GetStats();
  if (of_allocator.has_value() && of_allocator->bytes_limit.has_value()) {
    in_use = of_allocator->bytes_in_use;
    limit = std::min<int64_t>(limit, *of_allocator->bytes_limit);
  }
  return Status(status.code(),
                errors::Concat(status.message(), ": ", shape.num_elements() * static_cast<int64_t>(SizeOf(dtype)),
                               " bytes requested, ", in_use, " of the ", limit, " bytes for tensors in use"));
}
}  // namespace

Status Context::AllocateOutput(int i, const Dims& dims, Tensor* out) {
  tensorflow::TensorShape shape;
  XPU_RETURN_IF_ERROR(ToNativeShape(dims, &shape));
  return WithNumbers(*this, Allocate(Native(*this), i, shape, out), output_dtype(i), shape);
}

Status Context::AllocateOutputLike(int i, const Tensor& like, Tensor* out) {
  const tensorflow::TensorShape& shape = Native(like).shape();
  return WithNumbers(*this, Allocate(Native(*this), i, shape, out), output_dtype(i), shape);
}

Status Context::ForwardOrAllocate(std::initializer_list<int> candidates, int i, const Dims& dims, Tensor* out) {
  tensorflow::TensorShape shape;
  XPU_RETURN_IF_ERROR(ToNativeShape(dims, &shape));
  return WithNumbers(*this, Forward(Native(*this), candidates, i, shape, out), output_dtype(i), shape);
}

Status Context::ForwardOrAllocateLike(std::initializer_list<int> candidates, int i, const Tensor& like, Tensor* out) {
  const tensorflow::TensorShape& shape = Native(like).shape();
  return WithNumbers(*this, Forward(Native(*this), candidates, i, shape, out), output_dtype(i), shape);
}

Status Context::ShareOutput(int i, const Tensor& t, const Dims& dims) {
  tensorflow::TensorShape shape;
  XPU_RETURN_IF_ERROR(ToNativeShape(dims, &shape));
  tensorflow::Tensor shared;
  XPU_RETURN_IF_ERROR(FromNative(shared.BitcastFrom(Native(t), Native(*this)->expected_output_dtype(i), shape)));
  Native(*this)->set_output(i, std::move(shared));
  return OkStatus();
}

void Context::ForwardReference(int input, int i) {
  if (Native(*this)->input_is_ref(input)) Native(*this)->forward_ref_input_to_ref_output(input, i);
}

Status Context::AllocateTemporary(DType dtype, const Dims& dims, Temporary* out) {
  tensorflow::TensorShape shape;
  XPU_RETURN_IF_ERROR(ToNativeShape(dims, &shape));
  auto native = std::make_unique<Temporary::Native>();
  tensorflow::AllocatorAttributes attributes;
  attributes.set_on_host(on_host_);
  const Status status = FromNative(Native(*this)->allocate_temp(NativeType(dtype), shape, &native->tensor, attributes));
  XPU_RETURN_IF_ERROR(WithNumbers(*this, status, dtype, shape));
  out->view_ = Tensor(&native->tensor);
  out->native_ = std::move(native);
  return OkStatus();
}

Status Context::FindStream() {
  if (on_host_) {
    device_ = host_executor;
    stream_ = HostStream();
    return OkStatus();
  }
  if (__builtin_expect(scoped_stream != nullptr, 0)) {
    device_ = &scoped_stream->device_;
    stream_ = &scoped_stream->stream_;
    return OkStatus();
  }
  XPU_RETURN_IF_ERROR(RequireNotForked());
  TF_Status* status = ThreadStatus();
  SP_Stream stream = TF_GetStream(native_, status);
  if (stream == nullptr) {
    return Status(static_cast<Code>(TF_GetCode(status)), TF_Message(status));
  }
  device_ = stream->device;
  stream_ = stream->stream.get();
  return TakeEarlierFailure();
}

Status Context::TakeEarlierFailure() const { return xpu::TakeEarlierFailure(*stream_); }

// The tensor may go as soon as the command is enqueued: the next owner of its memory enqueues behind it.
Status Context::Workspace::Allocate(int64_t bytes, void** address) {
  constexpr int64_t kAlignment = 256;  // of device memory; TensorFlow's host memory has less
  const int64_t room = context_.on_host() ? kAlignment - 1 : 0;
  memory_ = std::make_unique<Temporary>();
  XPU_RETURN_IF_ERROR(context_.AllocateTemporary(DType::kUint8, {bytes + room}, memory_.get()));
  const auto start = reinterpret_cast<uintptr_t>(memory_->data());
  *address = reinterpret_cast<void*>((start + kAlignment - 1) / kAlignment * kAlignment);
  return OkStatus();
}

Status Context::LaunchElementwise(const ElementwiseDesc& desc, Args args) {
  XPU_RETURN_IF_ERROR(Prepare());
  Workspace workspace(*this);
  args.workspace_source = &workspace;
  return Enqueued(device_->Launch(*stream_, desc, args));
}

Status Context::Zero(void* device_dst, size_t bytes) {
  if (bytes == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(Prepare());
  return Enqueued(stream_->Memset(device_dst, 0, bytes));
}

Status Context::Copy(void* dst, const void* src, size_t bytes) {
  if (bytes == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(Prepare());
  return Enqueued(stream_->CopyDeviceToDevice(dst, src, bytes));
}

Status Context::CopyFromHost(void* device_dst, const void* host_src, size_t bytes) {
  if (bytes == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(Prepare());
  // The copy may run later, when the caller's bytes are gone: it takes along its own.
  auto copy = std::make_shared<std::vector<char>>(static_cast<const char*>(host_src),
                                                  static_cast<const char*>(host_src) + bytes);
  XPU_RETURN_IF_ERROR(stream_->CopyHostToDevice(device_dst, copy->data(), bytes));
  stream_->HostCallback([copy] { return OkStatus(); });
  return stream_->TakeStatus();
}

Status Context::CopyToHost(void* host_dst, const void* device_src, size_t bytes) {
  if (bytes == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(Prepare());
  XPU_RETURN_IF_ERROR(stream_->CopyDeviceToHost(host_dst, device_src, bytes));
  return Finish();
}

void Context::NoteWait() const {
  if (!on_host_ && observes_kernels.load(std::memory_order_relaxed)) {
    NoteObserved(KernelOf(native_).type_string(), Observed::kWaited);
  }
}

Status Context::Finish() {
  XPU_RETURN_IF_ERROR(Prepare());
  NoteWait();
  stream_->Wait();
  return TakeEarlierFailure();
}

int EnumValue(DType t) { return static_cast<int>(ToTf(t)); }

namespace {
template <typename T>
void Widen(const Tensor& t, std::vector<int64_t>* values) {
  const T* data = t.host<T>();
  values->assign(data, data + t.num_elements());
}
}  // namespace

Status HostIntegers(const Tensor& t, const char* what, std::vector<int64_t>* values) {
  if (t.dtype() == DType::kInt32) {
    Widen<int32_t>(t, values);
  } else if (t.dtype() == DType::kInt64) {
    Widen<int64_t>(t, values);
  } else {
    return errors::InvalidArgument(what, " must be int32 or int64, got ", Name(t.dtype()));
  }
  return OkStatus();
}

Status HostInteger(const Tensor& t, const char* what, int64_t* value) {
  if (t.num_elements() != 1) {
    return errors::InvalidArgument(what, " must be a scalar, got a tensor of shape ", t.ShapeString());
  }
  if (t.dtype() == DType::kInt32) {
    *value = t.host<int32_t>()[0];
  } else if (t.dtype() == DType::kInt64) {
    *value = t.host<int64_t>()[0];
  } else {
    return errors::InvalidArgument(what, " must be int32 or int64, got ", Name(t.dtype()));
  }
  return OkStatus();
}

Status HostShape(const Tensor& t, const char* what, Dims* shape) {
  if (!t.IsVector()) {
    return errors::InvalidArgument(what, " must be a vector of {int32,int64}, got shape ", t.ShapeString());
  }
  std::vector<int64_t> values;
  XPU_RETURN_IF_ERROR(HostIntegers(t, what, &values));
  *shape = Dims();
  int64_t elements = 1;
  for (int64_t v : values) {
    if (v < 0) return errors::InvalidArgument("Dimension ", v, " must be >= 0 in ", what);
    if (__builtin_mul_overflow(elements, v, &elements)) {
      std::string whole;
      for (int64_t extent : values) whole += (whole.empty() ? "" : ",") + std::to_string(extent);
      return errors::InvalidArgument("Shape [", whole, "] would have more than 2**63 - 1 elements");
    }
    shape->push_back(v);
  }
  return OkStatus();
}

}  // namespace xpu
