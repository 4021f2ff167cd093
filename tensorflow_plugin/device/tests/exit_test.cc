// The end of the process.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

// TensorFlow destroys nothing when the process ends: queued work must neither hold it up nor crash it.
#if !defined(__SANITIZE_THREAD__)  // it cannot follow a fork into a process of threads
TEST(Exit, WithWorkQueued) {
  const pid_t child = fork();
  if (child == 0) {
    auto* core = new Core;
    auto* memory = new SP_DeviceMemoryBase(core->Allocate(8 << 20));
    static std::vector<char> host(8 << 20);
    core->Enqueue(core->compute, [] { Sleep(3); });
    for (int i = 0; i < 500; ++i) {
      core->se.memcpy_htod(&core->device, core->h2d, memory, host.data(), host.size(), Checked());
      core->se.mem_zero(&core->device, core->compute, memory, host.size(), Checked());
    }
    std::exit(0);
  }
  int status = -1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (waitpid(child, &status, WNOHANG) == 0 && std::chrono::steady_clock::now() < deadline) Sleep(1);
  ASSERT_NE(status, -1) << "still running";
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace xpu
