// The end of the process.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

#if !defined(__SANITIZE_THREAD__)  // it cannot follow a fork into a process of threads
// How a child ends, or -1 if it does not: then it is killed.
int ExitCodeOf(pid_t child) {
  int status = -1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (waitpid(child, &status, WNOHANG) == 0 && std::chrono::steady_clock::now() < deadline) Sleep(1);
  if (status == -1) kill(child, SIGKILL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// TensorFlow destroys nothing when the process ends: queued work must neither hold it up nor crash it.
TEST(Exit, WithWorkQueued) {
  const pid_t child = fork();
  if (child == 0) {
    // Static pointers: nothing is destroyed at the end, while commands still use it, and nothing is lost.
    static auto* const core = new Core;
    static auto* const memory = new SP_DeviceMemoryBase(core->Allocate(8 << 20));
    static auto& host = *new std::vector<char>(8 << 20);
    core->Enqueue(core->compute, [] { Sleep(3); });
    for (int i = 0; i < 500; ++i) {
      core->se.memcpy_htod(&core->device, core->h2d, memory, host.data(), host.size(), Checked());
      core->se.mem_zero(&core->device, core->compute, memory, host.size(), Checked());
    }
    std::exit(0);
  }
  EXPECT_EQ(ExitCodeOf(child), 0);
}

// Returns how many calls went wrong in a process that was forked from one with a device on which foreign code runs.
int UseInAForkedProcess(Core& core, SP_DeviceMemoryBase memory) {
  auto& se = core.se;
  const SP_Device* d = &core.device;
  char host[4] = {};
  const std::function<void(TF_Status*)> refused[] = {
      [&](TF_Status* t) { se.memcpy_htod(d, core.h2d, &memory, host, 4, t); },
      [&](TF_Status* t) { se.memcpy_dtoh(d, core.d2h, host, &memory, 4, t); },
      [&](TF_Status* t) { se.memcpy_dtod(d, core.compute, &memory, &memory, 4, t); },
      [&](TF_Status* t) { se.sync_memcpy_htod(d, &memory, host, 4, t); },
      [&](TF_Status* t) { se.sync_memcpy_dtoh(d, host, &memory, 4, t); },
      [&](TF_Status* t) { se.sync_memcpy_dtod(d, &memory, &memory, 4, t); },
      [&](TF_Status* t) { se.block_host_until_done(d, core.compute, t); },
  };
  int wrong = 0;
  for (const auto& call : refused) {
    const Failure failure = StatusOf(call);
    wrong += failure.code != TF_FAILED_PRECONDITION || failure.message.find("spawn") == std::string::npos;
  }
  // A call that tells nobody does not wait for work that never runs.
  wrong += StatusOf([&](TF_Status* t) { se.synchronize_all_activity(d, t); }).code != TF_OK;
  se.deallocate(d, &memory);
  se.destroy_stream(d, core.compute);
  return wrong;
}

TEST(Exit, InAForkedProcessNothingIsWaitedForAndTheUserIsTold) {
  const pid_t child = fork();  // of its own: no test after this one is in a process that has forked with a device
  if (child == 0) {
    auto* core = new Core;
    const SP_DeviceMemoryBase memory = core->Allocate(64);
    static std::atomic<bool> runs{false};
    core->Enqueue(core->compute, [] {
      for (runs = true;;) Sleep(1);
    });
    while (!runs) Sleep(1);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(UseInAForkedProcess(*core, memory));
    _exit(ExitCodeOf(grandchild));
  }
  EXPECT_EQ(ExitCodeOf(child), 0);
}
#endif

}  // namespace
}  // namespace xpu
