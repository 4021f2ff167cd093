// DLPack's Python protocol: what consumers call from Python.
#ifndef TENSORFLOW_PLUGIN_INTEROP_PROTOCOL_H_
#define TENSORFLOW_PLUGIN_INTEROP_PROTOCOL_H_

#include <Python.h>

namespace xpu::interop {

// tf.Tensor.__dlpack__(*, stream, max_version, dl_device, copy) and tf.Tensor.__dlpack_device__().
extern PyMethodDef kDlpackMethod;
extern PyMethodDef kDlpackDeviceMethod;
// from_dlpack(x, device=None, copy=None)
extern PyMethodDef kFromDlpackFunction;

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_PROTOCOL_H_
