// The types that TensorFlow and DLPack 1.3 share.
#ifndef TENSORFLOW_PLUGIN_INTEROP_TYPES_H_
#define TENSORFLOW_PLUGIN_INTEROP_TYPES_H_

#include <cstdint>
#include <string>

#include "dlpack/dlpack.h"
#include "tensorflow/core/framework/types.pb.h"

namespace xpu::interop {

// bits is 0 where DLPack has no such type (string, resource, variant, quantized integers).
DLDataType ToDl(tensorflow::DataType type);
// DT_INVALID where TensorFlow has no such type. Lanes must be 1.
tensorflow::DataType FromDl(DLDataType type);

// Bytes that TensorFlow spends on one element. A type of less than 8 bits takes one byte, its value in the low bits:
// DLPack calls that padded.
int ElementBytes(tensorflow::DataType type);
inline bool IsSubByte(DLDataType type) { return type.bits < 8; }

// For messages: "float32", "float8_e3m4", "int32x4", "code 99 of 7 bits".
std::string NameOf(DLDataType type);
std::string NameOf(tensorflow::DataType type);
// "CPU:0", "CUDA:1", "device type 77:0".
std::string NameOf(DLDevice device);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_TYPES_H_
