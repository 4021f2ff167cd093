// The programs of TensorFlow's FakeQuant ops, and those that make bytes where such an op makes floats.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_QUANTIZE_PROGRAMS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_QUANTIZE_PROGRAMS_H_

#include "tensorflow_plugin/primitives/program.h"

namespace xpu {

// The integers that stand for a range's ends.
struct QuantizedRange {
  double low = 0, high = 255;
};

// The rows that follow from a range. They are its ends, moved so that 0 is an integer, the scale, its inverse, and that
// integer, counted from the first one. In the range from 0 to 0 the ends are infinite.
struct FakeQuantRow {
  enum { kLow, kHigh, kScale, kPerStep, kZeroPoint, kRows };
};

// In: the ends of a range; none if they are given here. Out: the rows.
const Program* FakeQuantRange(const QuantizedRange& steps);
const Program* FakeQuantRangeOf(float min, float max, const QuantizedRange& steps);

// In: elements, the rows. Out: elements. `divide`: by the scale, where the other multiplies by its inverse. That
// decides on which side of a step an element falls.
const Program* FakeQuantize(bool divide);

// The rows by which elements become bytes. A byte stands for (byte - zero point) * scale. For a range whose rows are
// not finite the scale is a NaN, and 0 for that from 0 to 0.
struct ByteRow {
  enum { kLow, kHigh, kFactor, kZeroPoint, kShift, kScale, kInteger, kRows };
};

// In: the rows of FakeQuantRange. Out: the rows of ByteRow, floats but for the last one, the zero point as int32. The
// first integer of the range becomes the byte -offset.
const Program* FakeQuantByteRange(bool divide, int offset);

// In: the rows of FakeQuantRange. Out: an int32. It fails, as a division by zero does, where rows are not finite or the
// range is wider than 2^16. The range from 0 to 0 is good.
constexpr int kLog2OfWidestRange = 16;
const Program* RequireFakeQuantRange();

// In: a float. Out: an int32. It fails, as a division by zero does, unless the float is at most `most`.
const Program* RequireAtMost(float most);

// In: elements that are no NaN, the first five rows of ByteRow. Out: bytes of `type`.
const Program* FakeQuantizeToBytes(bool divide, DType type);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_QUANTIZE_PROGRAMS_H_
