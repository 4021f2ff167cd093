// oneDNN's plans for convolutions (onednn.h), and for the layouts of their filters.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ONEDNN_PLANS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ONEDNN_PLANS_H_

#include <cstdint>
#include <memory>

#include "tensorflow_plugin/backends/cpu/onednn.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cpu {

// A plan's treatment of the filter, which oneDNN wants in a layout of its own.
enum class FilterUse : int64_t {
  kReorders,  // lays it out anew, and convolves
  kOnly,      // lays it out, and nothing else
  kPacked,    // finds it packed
};

// `layout`: of the filter; as oneDNN likes it where that is empty.
Status FindPlan(const ConvolutionDesc& d, FilterUse use, const dnnl::memory::desc& layout,
                const host_runtime::ThreadTeam& team, std::shared_ptr<OnednnPlan>* plan);

// The team of the calling thread.
const host_runtime::ThreadTeam& Alone();

// How the filter of a forward convolution is laid out for all its runs, and the plan that does it.
Status FindLayout(const ConvolutionDesc& d, std::shared_ptr<OnednnPlan>* layout);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ONEDNN_PLANS_H_
