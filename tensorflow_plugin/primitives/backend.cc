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

template <typename Desc>
Status Device::LaunchAny(Stream& stream, const Desc& desc, const Args& args) {
  Footprint footprint;
  XPU_RETURN_IF_ERROR(Check(desc, &footprint));
  const Capabilities& can = capabilities();
  XPU_REQUIRE(can.Supports(desc), errors::Unimplemented("this XPU backend does not implement ", Name(desc)));
  if (footprint.empty()) return OkStatus();
  XPU_RETURN_IF_ERROR(RequireAddresses(footprint, args));
  const int64_t scratch = can.WorkspaceBytes(desc);
  if (__builtin_expect(scratch == 0 || args.workspace != nullptr, 1)) return Enqueue(stream, desc, args, footprint);
  XPU_REQUIRE(args.workspace_source != nullptr,
              errors::InvalidArgument(Name(desc), " needs a workspace of ", scratch, " bytes, there is none"));
  Args with_workspace = args;
  XPU_RETURN_IF_ERROR(args.workspace_source->Allocate(scratch, &with_workspace.workspace));
  return Enqueue(stream, desc, with_workspace, footprint);
}

#define XPU_LAUNCH(name)                                                                      \
  Status Device::Launch(Stream& stream, const name##Desc& desc, const Args& args) {           \
    return LaunchAny(stream, desc, args);                                                     \
  }                                                                                           \
  Status Device::Enqueue(Stream&, const name##Desc&, const Args&, const Footprint&) {         \
    return errors::Unimplemented("this XPU backend does not implement the primitive " #name); \
  }
XPU_PRIMITIVES(XPU_LAUNCH)
#undef XPU_LAUNCH

Status Stream::Write(void* device_dst, const void* host_src, size_t size) {
  const char* const first = static_cast<const char*>(host_src);
  const auto kept = std::make_shared<const std::vector<char>>(first, first + size);
  XPU_RETURN_IF_ERROR(CopyHostToDevice(device_dst, kept->data(), size));
  HostCallback([kept] { return OkStatus(); });
  return OkStatus();
}

Status Stream::Read(void* host_dst, const void* device_src, size_t size) {
  XPU_RETURN_IF_ERROR(CopyDeviceToHost(host_dst, device_src, size));
  Wait();
  return OkStatus();
}

}  // namespace xpu
