// What this machine is and has, read from /proc and /sys.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_MACHINE_H_

#include <cstdint>
#include <string>

namespace xpu::runtime {

// Bytes of memory that this process may use in all, and what is left of it now; both respect the control group
// (container) the process is in. 0 if it cannot be told.
int64_t TotalMachineMemory();
int64_t AvailableMachineMemory();

// "AMD EPYC 7B13", "AuthenticAMD"; the machine's architecture and "unknown" where /proc/cpuinfo does not say.
std::string ProcessorName();
std::string ProcessorVendor();

// The node that all processors lie on that this process may run on; -1 if they span several, or it cannot be told.
int NumaNode();

// Processors' worth of time that this process may use, at least 1: those it may run on, or less where the control group
// (container) limits the time.
int UsableProcessors();

}  // namespace xpu::runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_MACHINE_H_
