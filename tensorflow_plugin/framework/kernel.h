// OpKernel: one node's kernel; Construction: what its constructor may ask of the node.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_KERNEL_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

struct TF_OpKernelConstruction;
struct TSL_Status;
typedef struct TSL_Status TF_Status;

namespace xpu {

// Reads attributes. A failure is remembered and reported by TensorFlow as the node's; the reader returns a zero.
class Construction {
 public:
  explicit Construction(TF_OpKernelConstruction* native) : native_(native) {}

  // T: DType, bool, int64_t, float, std::string, std::vector<int64_t>, std::vector<DType>, std::vector<float>; and
  // int32_t, std::vector<int32_t>, where TensorFlow's kernels read these and a number beyond them is an error.
  template <typename T>
  T Attr(const char* name);
  bool HasAttr(const char* name);
  // An attribute of type shape, all of it known.
  Dims ShapeAttr(const char* name);
  std::string NodeName() const;

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }
  bool on_host() const { return on_host_; }
  TF_OpKernelConstruction* native() const { return native_; }
  // True if the program has asked for the same results in every run (tf.config.experimental.enable_op_determinism).
  static bool DeterminismRequired();

 private:
  friend class Registry;
  void Check(TF_Status* status, const char* name);
  TF_OpKernelConstruction* native_;
  bool on_host_ = false;
  Status status_;
};

// Kernels are shared by threads: Compute must not change members without a lock.
class OpKernel {
 public:
  virtual ~OpKernel() = default;
  // Reads inputs, checks them, allocates outputs, launches primitives, returns without waiting for them.
  virtual Status Compute(Context& ctx) = 0;

 private:
  friend class Registry;
  bool on_host_ = false;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_KERNEL_H_
