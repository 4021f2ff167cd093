// The features that kernels can be made for, as a device and a backend state them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_CAPABILITIES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_CAPABILITIES_H_

#include "tensorflow_plugin/backends/gpu/hardware.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

inline Abilities AbilitiesOf(const Hardware& hardware) {
  Abilities abilities;
  abilities.has_double = hardware.has_double;
  abilities.only_processors = hardware.is_processor;
  return abilities;
}

class KernelCapabilities : public Capabilities {
 public:
  explicit KernelCapabilities(const Abilities& abilities) : abilities_(abilities) {}

  using Capabilities::Supports;
  using Capabilities::WorkspaceBytes;
#define XPU_GPU_PRIMITIVE(name)                                                                    \
  bool Supports(const name##Desc& desc) const override { return gpu::Supports(abilities_, desc); } \
  int64_t WorkspaceBytes(const name##Desc& desc) const override { return gpu::WorkspaceBytes(abilities_, desc); }
  XPU_PRIMITIVES(XPU_GPU_PRIMITIVE)
#undef XPU_GPU_PRIMITIVE

 private:
  const Abilities abilities_;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_CAPABILITIES_H_
