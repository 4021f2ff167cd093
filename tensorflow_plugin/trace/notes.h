// Notes of kernels on how they have computed a command: more than its descriptor says.
#ifndef TENSORFLOW_PLUGIN_TRACE_NOTES_H_
#define TENSORFLOW_PLUGIN_TRACE_NOTES_H_

namespace xpu::trace {

// While a profiler listens: how the epilogue of the command that this thread runs was computed, such as "in registers".
// Its event is then named "MatMul of float with an epilogue in registers". The text lives for ever.
void NoteEpilogue(const char* how);

}  // namespace xpu::trace

#endif  // TENSORFLOW_PLUGIN_TRACE_NOTES_H_
