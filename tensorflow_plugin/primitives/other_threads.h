// The state of the other threads of this process, as the system tells it.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_OTHER_THREADS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_OTHER_THREADS_H_

#include <chrono>

namespace xpu {

// Waits until all other threads sleep, `at_most` so long, and says whether they do. A thread that sleeps waits for
// something, most often with no lock in hand. True where the system does not tell.
bool AwaitOtherThreadsAsleep(std::chrono::steady_clock::duration at_most);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_OTHER_THREADS_H_
