#include "tensorflow_plugin/framework/held_values.h"

#include <map>
#include <mutex>
#include <utility>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {

// Those that are held, by their addresses. Never destroyed: kernels may be after the program's own objects.
struct HeldValue::Registry {
  Mutex mutex;
  std::map<const char*, HeldValue*> values;
  std::atomic<int> count{0};

  void Erase(std::map<const char*, HeldValue*>::iterator at) {
    values.erase(at);
    --count;
  }
};

HeldValue::Registry& HeldValue::All() {
  static auto* const registry = new Registry;
  return *registry;
}

HeldValue::HeldValue(tensorflow::Tensor value)
    : data_(static_cast<const char*>(value.data())), value_(std::move(value)) {}

HeldValue::~HeldValue() {
  Registry& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.values.find(data_);
  if (found != all.values.end() && found->second == this) all.Erase(found);
}

std::shared_ptr<const HeldValue> HeldValue::Hold(const tensorflow::Tensor& value) {
  if (value.NumElements() == 0) return nullptr;
  const auto* const data = static_cast<const char*>(value.data());
  Registry& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.values.find(data);
  if (found != all.values.end()) {
    // Null where its last holder is about to take it out.
    const std::shared_ptr<HeldValue> held = found->second->weak_from_this().lock();
    return held != nullptr && held->value_.TotalBytes() == value.TotalBytes() ? held : nullptr;
  }
  if (!value.RefCountIsOne()) return nullptr;
  auto held = std::make_shared<HeldValue>(value);
  all.values.emplace(data, held.get());
  ++all.count;
  return held;
}

void HeldValue::GiveUp(const void* data) {
  Registry& all = All();
  if (all.count.load() == 0) return;
  tensorflow::Tensor value;  // freed when the lock is
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto* const address = static_cast<const char*>(data);
  auto found = all.values.upper_bound(address);
  if (found == all.values.begin()) return;
  HeldValue& held = *(--found)->second;
  if (address >= held.data_ + held.value_.TotalBytes()) return;
  held.valid_.store(false);
  value = std::move(held.value_);
  all.Erase(found);
}

}  // namespace xpu
