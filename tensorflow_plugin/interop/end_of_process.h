// When the interpreter ends, Python (before 3.14) ends every other thread that asks for its lock with pthread_exit.
// That unwinds the stack, and ends the process with an error where a function may not throw, such as a destructor. So
// calls that may ask for the lock catch it. The thread stays where it is until the process is gone, as in later
// versions of Python.
#ifndef TENSORFLOW_PLUGIN_INTEROP_END_OF_PROCESS_H_
#define TENSORFLOW_PLUGIN_INTEROP_END_OF_PROCESS_H_

#include <cxxabi.h>
#include <unistd.h>

namespace xpu::interop {

[[noreturn]] inline void AwaitTheEnd() {
  while (true) pause();
}

template <typename F>
decltype(auto) UntilTheEnd(F&& f) {
  try {
    return f();
  } catch (const abi::__forced_unwind&) {
    AwaitTheEnd();
  }
}

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_END_OF_PROCESS_H_
