#include "tensorflow_plugin/backends/cuda/clock.h"

namespace xpu::cuda {
namespace {

// The driver tells milliseconds as a float, which has 60 ns of precision for a second.
constexpr auto kLongest = std::chrono::seconds(1);

}  // namespace

std::shared_ptr<ReferenceEvent> Clock::NewEvent() const {
  auto made = std::make_shared<ReferenceEvent>(context_);
  if (Cu().CtxSetCurrent(context_) != kSuccess || Cu().EventRecord(made->event.get(), stream_) != kSuccess ||
      Cu().EventSynchronize(made->event.get()) != kSuccess) {
    return nullptr;
  }
  return made;
}

std::shared_ptr<const ReferenceEvent> Clock::Reference() {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (reference_ == nullptr || now - made_ > kLongest) {
    const std::shared_ptr<ReferenceEvent> made = NewEvent();
    if (made == nullptr || (reference_ != nullptr && !reference_->TimeOf(made->event.get(), &made->ns))) return nullptr;
    reference_ = made;
    made_ = now;
  }
  return reference_;
}

bool Clock::Read(uint64_t* ns) {
  const std::shared_ptr<const ReferenceEvent> reference = Reference();
  const std::shared_ptr<ReferenceEvent> now = NewEvent();
  if (reference == nullptr || now == nullptr || !reference->TimeOf(now->event.get(), &now->ns)) return false;
  *ns = static_cast<uint64_t>(now->ns);
  return true;
}

}  // namespace xpu::cuda
