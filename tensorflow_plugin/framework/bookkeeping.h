// Ops in which no device has anything to compute: reports of where ops ran leave them out (trace_placement).
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_BOOKKEEPING_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_BOOKKEEPING_H_

#include <set>
#include <string>

namespace xpu {

// Those whose traits say so (op_traits.h), and those that bring, name or describe values, or steer a graph.
std::set<std::string> BookkeepingOps();

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_BOOKKEEPING_H_
