#include "tensorflow_plugin/framework/invariant_values.h"

#include <map>
#include <mutex>
#include <utility>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {

// The values that are held, by their addresses. Never destroyed: kernels may outlive the program's own objects.
struct InvariantValue::Registry {
  Mutex mutex;
  std::map<const char*, InvariantValue*> values;
  std::atomic<int> count{0};

  void Erase(std::map<const char*, InvariantValue*>::iterator at) {
    values.erase(at);
    --count;
  }
};

InvariantValue::Registry& InvariantValue::All() {
  static auto* const registry = new Registry;
  return *registry;
}

InvariantValue::InvariantValue(tensorflow::Tensor value)
    : data_(static_cast<const char*>(value.data())), value_(std::move(value)) {}

InvariantValue::~InvariantValue() {
  Registry& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.values.find(data_);
  if (found != all.values.end() && found->second == this) all.Erase(found);
}

std::shared_ptr<const InvariantValue> InvariantValue::Hold(const tensorflow::Tensor& value) {
  if (value.NumElements() == 0) return nullptr;
  const auto* const data = static_cast<const char*>(value.data());
  Registry& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.values.find(data);
  if (found != all.values.end()) {
    // Null where its last holder is about to take it out.
    const std::shared_ptr<InvariantValue> held = found->second->weak_from_this().lock();
    return held != nullptr && held->value_.TotalBytes() == value.TotalBytes() ? held : nullptr;
  }
  if (!value.RefCountIsOne()) return nullptr;
  auto held = std::make_shared<InvariantValue>(value);
  all.values.emplace(data, held.get());
  ++all.count;
  return held;
}

void InvariantValue::StopHolding(const void* data) {
  Registry& all = All();
  if (all.count.load() == 0) return;
  tensorflow::Tensor value;  // freed when the lock is
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto* const address = static_cast<const char*>(data);
  auto found = all.values.upper_bound(address);
  if (found == all.values.begin()) return;
  InvariantValue& held = *(--found)->second;
  if (address >= held.data_ + held.value_.TotalBytes()) return;
  held.valid_.store(false);
  value = std::move(held.value_);
  all.Erase(found);
}

}  // namespace xpu
