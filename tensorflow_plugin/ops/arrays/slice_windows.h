// The places of windows of an array that begin where the device says.
#ifndef TENSORFLOW_PLUGIN_OPS_ARRAYS_SLICE_WINDOWS_H_
#define TENSORFLOW_PLUGIN_OPS_ARRAYS_SLICE_WINDOWS_H_

#include "tensorflow_plugin/ops/arrays/util.h"

namespace xpu {

// Windows of `extents` in an array of `dims`, as rows: those axes at the end that a window fills are a row's elements.
class SliceWindows {
 public:
  explicit SliceWindows(DType index_type);

  static void Require(Needs& n, const char* index_type);

  // How many axes count rows; 0 if the window is the whole array.
  static int CountingAxes(const Dims& dims, const Dims& extents);

  // The numbers of the rows of the window that begins at `starts` [rank], which is on the device. A window that would
  // reach out is moved inside.
  Status Rows(Context& ctx, const Dims& dims, const Dims& extents, const Tensor& starts, Temporary* rows) const;

  // Copies that window of `x` to `y`, which has at least one element. It is not the whole array.
  Status Read(Context& ctx, const Tensor& x, const Tensor& starts, Tensor& y) const;

 private:
  const Program* start_;  // an axis' part of where the window begins, in rows
  const Program* position_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_ARRAYS_SLICE_WINDOWS_H_
