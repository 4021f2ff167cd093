// The checks, one table per theme.
#ifndef TENSORFLOW_PLUGIN_CONFORMANCE_CHECKS_H_
#define TENSORFLOW_PLUGIN_CONFORMANCE_CHECKS_H_

#include <vector>

#include "tensorflow_plugin/conformance/harness.h"

namespace xpu::conformance {

std::vector<Check> RegistrationChecks();
std::vector<Check> DeviceChecks();
std::vector<Check> MemoryChecks();
std::vector<Check> CopyChecks();
std::vector<Check> FillChecks();
std::vector<Check> StreamChecks();
std::vector<Check> EventChecks();
std::vector<Check> CallbackChecks();
std::vector<Check> TimerChecks();
std::vector<Check> ThreadChecks();

// All of them, in this order.
const std::vector<Check>& AllChecks();

// The measurements: the reason with which one passes is a time, "0.4 us".
const std::vector<Check>& Measurements();

}  // namespace xpu::conformance

#endif  // TENSORFLOW_PLUGIN_CONFORMANCE_CHECKS_H_
