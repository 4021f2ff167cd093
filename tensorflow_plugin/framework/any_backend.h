// A backend without devices that supports everything, so that all ops can be registered.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_ANY_BACKEND_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_ANY_BACKEND_H_

#include <memory>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

class AnyBackend final : public Backend, private Capabilities {
 public:
  const char* subdevice_type() const override { return "XPU_ANY"; }
  int DeviceCount(const BackendOptions&) const override { return 0; }
  Status CreateDevice(int, const BackendOptions&, std::unique_ptr<Device>*) const override { return NoDevice(); }
  Status Describe(int, const BackendOptions&, DeviceInfo*) const override { return NoDevice(); }
  const Capabilities& capabilities() const override { return *this; }
  bool HostCanAddress(const void*, const BackendOptions&) const override { return false; }

 private:
#define XPU_SUPPORT(name) \
  bool Supports(const name##Desc&) const override { return true; }
  XPU_PRIMITIVES(XPU_SUPPORT)
#undef XPU_SUPPORT
  static Status NoDevice() { return errors::NotFound("there is no device"); }
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_ANY_BACKEND_H_
