#include "tensorflow_plugin/backends/gpu/machine.h"

#include <utility>

namespace xpu::gpu {
namespace {

// Tables that are kept: more than the shapes of a model, less than memory that anybody would miss.
constexpr size_t kMaxTables = 4096;

}  // namespace

size_t Machine::HashOfNumbers::operator()(const std::vector<int64_t>& numbers) const {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = numbers.size();
  for (int64_t number : numbers) hash = (hash ^ static_cast<uint64_t>(number) ^ hash >> 29) * kOdd;
  return hash ^ hash >> 32;
}

Status Machine::FindTable(const std::vector<int64_t>& numbers, std::shared_ptr<const Table>* table) {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  if (tables_.size() >= kMaxTables) tables_.clear();
  std::shared_ptr<const Table>& found = tables_[numbers];
  if (found == nullptr) XPU_RETURN_IF_ERROR(MakeTable(numbers, &found));
  *table = found;
  return OkStatus();
}

}  // namespace xpu::gpu
