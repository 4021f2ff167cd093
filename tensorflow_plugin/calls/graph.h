// Which graphs can be called directly (direct_call.h).
#ifndef TENSORFLOW_PLUGIN_CALLS_GRAPH_H_
#define TENSORFLOW_PLUGIN_CALLS_GRAPH_H_

#include <string>

namespace tensorflow {
class Graph;
class ProcessFunctionLibraryRuntime;
}  // namespace tensorflow

namespace xpu::calls {

class DirectCall;

// From now on functions are called as TensorFlow does.
void SwitchOff();

// This thread is about to call the function of this name, for the first time maybe: TensorFlow optimises a function's
// graph on the thread that calls it.
void ExpectGraph(const std::string& function);

// The graph of a function, placed and in clusters, as it will be divided between devices.
void SeeGraph(const std::string& function, const tensorflow::Graph& graph);

// What the thread has seen since it expected something; null if that was no graph, or one that cannot be called so: it
// has many ops, control flow, ops with a state of their own, or values that cross between devices by more than being
// read. Kernels are made with the function's library. The caller's.
DirectCall* TakeCall(const tensorflow::ProcessFunctionLibraryRuntime& library);

}  // namespace xpu::calls

#endif  // TENSORFLOW_PLUGIN_CALLS_GRAPH_H_
