#include "tensorflow_plugin/primitives/float_precision.h"

#include <atomic>

namespace xpu {
namespace {

std::atomic<bool (*)()> the_query{nullptr};

}  // namespace

bool AllowsTf32() {
  bool (*const query)() = the_query.load(std::memory_order_relaxed);
  return query != nullptr && query();
}

void SetTf32Query(bool (*query)()) { the_query.store(query); }

}  // namespace xpu
