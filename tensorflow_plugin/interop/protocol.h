// DLPack's Python protocol: what consumers call from Python.
#ifndef TENSORFLOW_PLUGIN_INTEROP_PROTOCOL_H_
#define TENSORFLOW_PLUGIN_INTEROP_PROTOCOL_H_

#include <Python.h>

namespace xpu::interop {

// tf.Tensor.__dlpack__(*, stream, max_version, dl_device, copy) and tf.Tensor.__dlpack_device__().
extern PyMethodDef kDlpackMethod;
// The same for a tensor that was read from a variable, to share the variable's memory.
extern PyMethodDef kDlpackOfVariableMethod;
extern PyMethodDef kDlpackDeviceMethod;
// from_dlpack(x, device=None, copy=None)
extern PyMethodDef kFromDlpackFunction;

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_PROTOCOL_H_
