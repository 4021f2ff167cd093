#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {
namespace {

// Entries with elements need an address.
Status RequireAddresses(const Footprint& footprint, const Args& args) {
  for (int i = 0; i < footprint.num_in; ++i) {
    XPU_REQUIRE(args.in[i] != nullptr || footprint.in[i].elements == 0,
                errors::InvalidArgument("input ", i, " of a command has elements but a null address"));
  }
  for (int i = 0; i < footprint.num_out; ++i) {
    XPU_REQUIRE(args.out[i] != nullptr || footprint.out[i].elements == 0,
                errors::InvalidArgument("output ", i, " of a command has elements but a null address"));
  }
  return OkStatus();
}

}  // namespace

#define XPU_LAUNCH(name)                                                                      \
  Status Device::Launch(Stream& stream, const name##Desc& desc, const Args& args) {           \
    Footprint footprint;                                                                      \
    XPU_RETURN_IF_ERROR(Check(desc, &footprint));                                             \
    if (footprint.empty()) return OkStatus();                                                 \
    XPU_RETURN_IF_ERROR(RequireAddresses(footprint, args));                                   \
    return Enqueue(stream, desc, args, footprint);                                            \
  }                                                                                           \
  Status Device::Enqueue(Stream&, const name##Desc&, const Args&, const Footprint&) {         \
    return errors::Unimplemented("this XPU backend does not implement the primitive " #name); \
  }
XPU_PRIMITIVES(XPU_LAUNCH)
#undef XPU_LAUNCH

}  // namespace xpu
