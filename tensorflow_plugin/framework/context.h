// Context: what a kernel sees of one execution: inputs, outputs, temporaries, the device and its stream.
//
// The C kernel API allocates a TF_Tensor for every input and output it hands out; that alone costs more than
// launching a small command. The core is built for one TensorFlow minor version in any case (framework/variables.h says
// why). So context.cc talks to TensorFlow's own OpKernelContext and allocates nothing per argument.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_CONTEXT_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_CONTEXT_H_

#include <cstdint>
#include <initializer_list>

#include "tensorflow_plugin/framework/tensor.h"
#include "tensorflow_plugin/primitives/backend.h"

struct TF_OpKernelContext;

namespace xpu {

class Context {
 public:
  // `on_host`: the kernel was registered with all its arguments in host memory; commands then run at once.
  Context(TF_OpKernelContext* native, bool on_host) : native_(native), on_host_(on_host) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int num_inputs() const;
  int num_outputs() const;
  Tensor input(int i) const;       // not for references: framework/variables.h
  DType input_dtype(int i) const;  // kInvalid for resources, strings and the like
  DType output_dtype(int i) const;

  // Outputs. The forwarding forms reuse the buffer of one of `candidates` (input numbers). They do so when nobody else
  // holds it and type, size and memory fit; the result then aliases that input.
  Status AllocateOutput(int i, const Dims& shape, Tensor* out);
  Status AllocateOutputLike(int i, const Tensor& like, Tensor* out);
  Status ForwardOrAllocate(std::initializer_list<int> candidates, int i, const Dims& shape, Tensor* out);
  Status ForwardOrAllocateLike(std::initializer_list<int> candidates, int i, const Tensor& like, Tensor* out);
  // Output i becomes another name of the tensor `t`, with the given shape and the output's type (same number of bytes).
  Status ShareOutput(int i, const Tensor& t, const Dims& shape);
  // Output i becomes the reference that input `input` is; without effect where input `input` is none.
  void ForwardReference(int input, int i);
  Status AllocateTemporary(DType dtype, const Dims& shape, Temporary* out);

  // Commands. The failure of an earlier command on the device, if nobody was told yet, is this op's error. So is the
  // failure of its own command where that ran at once. LaunchChecked waits and returns failures that depend on data (a
  // bad index). Kernels that can meet them call it, since TensorFlow must see the error from the op that caused it.
  template <typename Desc>
  Status Launch(const Desc& desc, std::initializer_list<const void*> in, std::initializer_list<void*> out) {
    XPU_RETURN_IF_ERROR(Prepare());
    Workspace workspace(*this);
    return Enqueued(device_->Launch(*stream_, desc, MakeArgs(in, out, &workspace)));
  }
  // True if the device runs such a command, for ops that have several ways.
  template <typename Desc>
  bool Supports(const Desc& desc) {
    return Prepare().ok() && device_->Supports(desc);
  }
  // While a cluster is captured, LaunchChecked returns OK: `explain` says what the error is if the command fails when
  // it runs. Without it, the kernel goes on after a failure, and cannot be captured.
  template <typename Desc>
  Status LaunchChecked(const Desc& desc, std::initializer_list<const void*> in, std::initializer_list<void*> out,
                       const DescribeError* explain) {
    XPU_RETURN_IF_ERROR(Prepare());
    Status result;
    Workspace workspace(*this);
    Args args = MakeArgs(in, out, &workspace);
    args.status = &result;
    args.explain = explain;
    if (explain == nullptr) NoteWait();
    XPU_RETURN_IF_ERROR(device_->Launch(*stream_, desc, args));
    return result.ok() ? TakeEarlierFailure() : result;
  }
  // The same for programs whose number of buffers is known only at run time.
  Status LaunchElementwise(const ElementwiseDesc& desc, Args args);

  // Sets `bytes` bytes of device memory to zero.
  Status Zero(void* device_dst, size_t bytes);
  // Copies within device memory (or within host memory for kernels on host).
  Status Copy(void* dst, const void* src, size_t bytes);
  // Copies small host data to device memory; the host bytes are consumed before this returns.
  Status CopyFromHost(void* device_dst, const void* host_src, size_t bytes);

  // Copies what commands have computed to the host, and waits for it.
  Status CopyToHost(void* host_dst, const void* device_src, size_t bytes);

  // Waits for everything enqueued so far, and returns the first failure that nobody was told.
  Status Finish();

  bool on_host() const { return on_host_; }

  TF_OpKernelContext* native() const { return native_; }

 private:
  // Scratch memory for a command whose backend asks for some: a temporary tensor.
  class Workspace final : public WorkspaceSource {
   public:
    explicit Workspace(Context& context) : context_(context) {}
    Status Allocate(int64_t bytes, void** address) override;

   private:
    Context& context_;
    std::unique_ptr<Temporary> memory_;
  };

  static Args MakeArgs(std::initializer_list<const void*> in, std::initializer_list<void*> out, Workspace* workspace) {
    Args args;
    args.workspace_source = workspace;
    int i = 0;
    for (const void* p : in) args.in[i++] = p;
    i = 0;
    for (void* p : out) args.out[i++] = p;
    return args;
  }
  Status Prepare() { return stream_ ? OkStatus() : FindStream(); }
  Status FindStream();
  void NoteWait() const;  // for tests of traits
  Status TakeEarlierFailure() const;
  // The status to return after enqueuing a command.
  Status Enqueued(Status status) const { return status.ok() ? stream_->TakeStatus() : status; }

  TF_OpKernelContext* native_;
  bool on_host_;
  Device* device_ = nullptr;
  Stream* stream_ = nullptr;
};

// While it lives, kernels that this thread computes launch here, whatever stream TensorFlow has for them. Kernels with
// all arguments in host memory keep to the host.
class ScopedStream {
 public:
  ScopedStream(Device& device, Stream& stream);
  ~ScopedStream();
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;

 private:
  friend class Context;
  Device& device_;
  Stream& stream_;
  ScopedStream* const outer_;
};

// The device on which kernels with all arguments in host memory run their commands (synchronously). Set once, by
// plugin.cc, before kernels are registered.
void SetHostExecutor(Device* device);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_CONTEXT_H_
