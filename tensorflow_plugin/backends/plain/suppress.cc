#include <vector>

#include "tensorflow_plugin/backends/plain/boxes.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

// keeps(i, kept): whether candidate i stays beside those that are kept.
template <typename F>
void Suppress(const SuppressDesc& d, bool* kept, F&& stays) {
  int64_t count = 0;
  for (int64_t i = 0; i < d.n; ++i) {
    kept[i] = count < d.most && stays(i);
    count += kept[i];
  }
}

}  // namespace

Status Run(const SuppressDesc& d, const Args& args) {
  const float* const in = static_cast<const float*>(args.in[0]);
  bool* const kept = static_cast<bool*>(args.out[0]);
  if (d.pairs) {
    std::vector<int64_t> so_far;
    Suppress(d, kept, [&](int64_t i) {
      for (const int64_t j : so_far) {
        if (in[i * d.n + j] > d.threshold) return false;
      }
      so_far.push_back(i);
      return true;
    });
    return OkStatus();
  }
  std::vector<Box> so_far;
  Suppress(d, kept, [&](int64_t i) {
    const Box box(in + i * 4);
    // Neighbours in the order of their scores tend to overlap: the latest first.
    for (size_t j = so_far.size(); j-- > 0;) {
      if (Overlap(box, so_far[j]) > d.threshold) return false;
    }
    so_far.push_back(box);
    return true;
  });
  return OkStatus();
}

}  // namespace xpu::plain
