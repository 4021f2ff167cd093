// Values of variables that members read in host memory (host_variable_op.h).
#ifndef TENSORFLOW_PLUGIN_CLUSTER_KNOWN_VALUES_H_
#define TENSORFLOW_PLUGIN_CLUSTER_KNOWN_VALUES_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cluster {

// True if the CPU has the variable.
bool IsOfCpu(const tensorflow::ResourceHandle& handle);

// The variable of a handle, on whatever device of this process.
absl::Status FindVariableAnywhere(tensorflow::OpKernelContext* ctx, const tensorflow::ResourceHandle& handle,
                                  tensorflow::core::RefCountPtr<tensorflow::Var>* variable);

// Copies a value of the device to host memory, once the stream's commands have made it. An error of an earlier command
// stays for the next who asks.
absl::Status ReadToHost(tensorflow::OpKernelContext* ctx, Stream& stream, const tensorflow::Tensor& value,
                        tensorflow::Tensor* on_host);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_KNOWN_VALUES_H_
