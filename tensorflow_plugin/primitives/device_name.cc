#include "tensorflow_plugin/primitives/device_name.h"

#include <atomic>

namespace xpu {
namespace {

std::atomic<const char*> type_name{"XPU"};

}  // namespace

std::string DeviceName(int ordinal) { return std::string(type_name) + ":" + std::to_string(ordinal); }

void SetDeviceTypeName(const char* type) { type_name = type; }

}  // namespace xpu
