// The facts of this machine, read from /proc and /sys. `root`, for tests, is a folder that holds the two.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_MACHINE_H_

#include <sched.h>

#include <cstdint>
#include <string>

namespace xpu::host_runtime {

// Bytes of memory that this process may use in all, and those left now; both respect the control group (container) of
// the process. 0 if it cannot be told.
int64_t TotalMachineMemory(const std::string& root = "");
int64_t AvailableMachineMemory(const std::string& root = "");

// "AMD EPYC 7B13", "AuthenticAMD"; the machine's architecture and "unknown" where /proc/cpuinfo does not say.
std::string ProcessorName();
std::string ProcessorVendor();

// The node that all processors lie on that this process may run on; -1 if they span several, or it cannot be told.
int NumaNode(const std::string& root = "");

// Processors' worth of time that this process may use, at least 1. It is the processors that it may run on, or less
// where the control group (container) limits the time.
int UsableProcessors(const std::string& root = "");

// The processors that the calling thread may use, and those of them but one. False if there is no other.
bool FindOthers(int processor, cpu_set_t* usable, cpu_set_t* others);

// Moves the calling thread if it is on this processor and may use another. False if it is on another one. For a thread
// that wakes on the processor of the one that woke it: it would wait until that one sleeps. Some systems leave it
// there, such as virtual machines that spare processors.
bool LeaveProcessor(int processor);

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_MACHINE_H_
