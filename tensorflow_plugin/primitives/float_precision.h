// How exact products of float32 numbers must be, which a program may choose while it runs.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_FLOAT_PRECISION_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_FLOAT_PRECISION_H_

namespace xpu {

// True if matmuls and convolutions of float32 may round their inputs to TF32, which has 10 bits of mantissa. False
// until SetTf32Query.
bool AllowsTf32();

// `query` is asked at every command; null: the answer is false.
void SetTf32Query(bool (*query)());

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_FLOAT_PRECISION_H_
