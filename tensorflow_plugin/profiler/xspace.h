// TensorFlow's XSpace (tsl/profiler/protobuf/xplane.proto), written byte by byte: its dozen fields need no protobuf
// library, of which the process has TensorFlow's and whose version that decides.
#ifndef TENSORFLOW_PLUGIN_PROFILER_XSPACE_H_
#define TENSORFLOW_PLUGIN_PROFILER_XSPACE_H_

#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::profiler {

struct DeviceSpeed {
  std::string device;  // "XPU:0"
  DeviceInfo info;
};

// A plane per device, "/device:CUSTOM:XPU:0", with a line for each queue: its commands, and whose they are, op by op.
// Commands that ran side by side are on lines next to each other.
//
// An event is named after its command. Its stats have the names of TensorFlow's tools: tf_op ("name:type"), flops and
// bytes_accessed. For people it has kind (trace::Kind), and with flops gflop_per_second and flop_per_byte, a point of
// the roofline. Those of a plane: what its device can do per second, which is the roof.
std::string EncodeXSpace(const trace::Trace& recorded, const std::vector<DeviceSpeed>& speeds);

}  // namespace xpu::profiler

#endif  // TENSORFLOW_PLUGIN_PROFILER_XSPACE_H_
