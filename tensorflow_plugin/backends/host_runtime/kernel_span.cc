#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"

#include <string>

namespace xpu::host_runtime {

thread_local KernelSpan* KernelSpan::current_ = nullptr;

KernelSpan::KernelSpan(trace::Line& line, const trace::Label& label)
    : line_(line), label_(label), outer_(current_), begin_ns_(trace::NowNs()) {
  current_ = this;
}

KernelSpan::~KernelSpan() {
  const uint64_t end_ns = trace::NowNs();
  current_ = outer_;
  trace::Label label = label_;
  if (engine_ != nullptr || epilogue_ != nullptr) {
    std::string name = trace::TextOf(label.what);
    if (epilogue_ != nullptr) name += std::string(" ") + epilogue_;
    if (engine_ != nullptr) name += std::string(": ") + engine_;
    label.what = trace::Intern(name);
  }
  trace::Record(line_, label, begin_ns_, end_ns);
}

void KernelSpan::SetEngine(const char* name) {
  if (current_ != nullptr && current_->engine_ == nullptr) current_->engine_ = name;
}

void KernelSpan::SetEpilogue(const char* way) {
  if (current_ != nullptr) current_->epilogue_ = way;
}

}  // namespace xpu::host_runtime
