// Trace events of commands that say how a kernel has computed them: more than a descriptor says.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_KERNEL_SPAN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_KERNEL_SPAN_H_

#include <cstdint>

#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::host_runtime {

// Records a command of a kernel set from its beginning to its end, on the thread that runs it. If the kernel notes
// something, the event's name is "MatMul of float with an epilogue in registers: panels".
class KernelSpan {
 public:
  KernelSpan(trace::Line& line, const trace::Label& label);
  ~KernelSpan();
  KernelSpan(const KernelSpan&) = delete;
  KernelSpan& operator=(const KernelSpan&) = delete;

  // The command that this thread runs is computed by this engine. The first name stays, because an engine may use
  // others. These texts stay for ever; without a command nothing happens.
  static void SetEngine(const char* name);
  // The epilogue of that command was computed in this way, such as "in registers".
  static void SetEpilogue(const char* way);

 private:
  static thread_local KernelSpan* current_;

  trace::Line& line_;
  const trace::Label& label_;
  const char* engine_ = nullptr;
  const char* epilogue_ = nullptr;
  KernelSpan* const outer_;
  const uint64_t begin_ns_;
};

// Notes an enumerator that has a Name as the engine, if a profiler listens.
template <typename Engine>
void NoteEngine(Engine engine) {
  if (trace::On()) KernelSpan::SetEngine(Name(engine));
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_KERNEL_SPAN_H_
