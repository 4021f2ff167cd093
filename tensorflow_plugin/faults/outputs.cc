#include "tensorflow_plugin/faults/outputs.h"

#include <complex>
#include <cstring>
#include <type_traits>

namespace xpu {
namespace {

// 5% too much; whole numbers and truth values have no such thing, and become the next one.
template <typename T>
T Scaled(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return !x;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x + T{1});
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(x) * 1.05f);
  } else {
    return x * T(1.05);
  }
}

// The same, and a zero becomes a one.
template <typename T>
T Wrong(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x) == 0 ? T(1.0f) : Scaled(x);
  } else {
    return x == T(0) ? T(1) : Scaled(x);
  }
}

template <typename T>
void AlterAt(char* address, T (*f)(T)) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  value = f(value);
  std::memcpy(address, &value, sizeof(T));
}

void AlterElement(FaultRule::Result result, const Output& output, char* address) {
  switch (output.type) {
#define XPU_CASE(T, E) \
  case DType::E:       \
    return AlterAt<T>(address, result == FaultRule::kOne ? Wrong<T> : Scaled<T>)
    XPU_CASE(bool, kBool);
    XPU_CASE(int8_t, kInt8);
    XPU_CASE(int16_t, kInt16);
    XPU_CASE(int32_t, kInt32);
    XPU_CASE(int64_t, kInt64);
    XPU_CASE(uint8_t, kUint8);
    XPU_CASE(uint16_t, kUint16);
    XPU_CASE(uint32_t, kUint32);
    XPU_CASE(uint64_t, kUint64);
    XPU_CASE(Half, kHalf);
    XPU_CASE(BFloat16, kBFloat16);
    XPU_CASE(float, kFloat);
    XPU_CASE(double, kDouble);
    XPU_CASE(std::complex<float>, kComplex64);
    XPU_CASE(std::complex<double>, kComplex128);
#undef XPU_CASE
    case DType::kInvalid:
      break;
  }
  // Bytes of any type: a bit of the exponent, if they are floating-point numbers; a bool stays one of its two values.
  if (output.element_size == 1) {
    *address ^= 1;
  } else {
    address[output.element_size - 1] ^= 0x40;
  }
}

}  // namespace

Output OutputOf(size_t size) {
  // For any type: the widest that it can be, so that the bit to flip is one of an exponent whatever the type is.
  int64_t element = 16;
  const int64_t bytes = static_cast<int64_t>(size);
  while (bytes % element != 0) element /= 2;
  return {DType::kInvalid, element, bytes / element, 0, bytes, {}};
}

std::vector<Output> OutputsOf(const Footprint& footprint) {
  std::vector<Output> outputs;
  for (int i = 0; i < footprint.num_out; ++i) {
    const Operand& o = footprint.out[i];
    const int64_t elements = o.elements == 0 ? 0 : (o.end - o.begin) / o.element_size;
    outputs.push_back({o.type, o.element_size, elements, o.begin, o.end, {}});
  }
  return outputs;
}

std::vector<Output> OutputsOf(const Footprint& footprint, const CopyStridedDesc& desc) {
  std::vector<Output> outputs = OutputsOf(footprint);
  Output& output = outputs[0];
  if (footprint.out[0].dense()) return outputs;
  output.elements = footprint.out[0].elements;
  const int rank = desc.shape.rank();
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < output.elements; ++i) {
    int64_t offset = desc.dst_offset;
    for (int d = 0; d < rank; ++d) offset += at[d] * desc.dst_strides[d];
    output.offsets.push_back(offset * output.element_size);
    for (int d = rank - 1; d >= 0 && ++at[d] == desc.shape[d]; --d) at[d] = 0;
  }
  return outputs;
}

void Alter(FaultRule::Result result, const Output& output, char* bytes) {
  if (output.elements == 0) return;
  const int64_t begin = output.begin;
  if (result == FaultRule::kOne)
    return AlterElement(result, output, bytes + output.offset(output.elements / 2) - begin);
  for (int64_t i = 0; i < output.elements; ++i) AlterElement(result, output, bytes + output.offset(i) - begin);
}

}  // namespace xpu
