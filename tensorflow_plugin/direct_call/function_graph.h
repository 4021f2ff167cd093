// How a call learns the graph of its function (direct_call.h).
#ifndef TENSORFLOW_PLUGIN_DIRECT_CALL_FUNCTION_GRAPH_H_
#define TENSORFLOW_PLUGIN_DIRECT_CALL_FUNCTION_GRAPH_H_

#include <memory>
#include <string>

namespace tensorflow {
class ProcessFunctionLibraryRuntime;
}  // namespace tensorflow

namespace xpu::direct_call {

class DirectCall;
struct CallPlan;

// From now on functions are called as TensorFlow does.
void SwitchOff();

// This thread is about to call the function of this name, maybe for the first time. TensorFlow optimises a function's
// graph on the thread that calls it.
void ExpectGraph(const std::string& function);

// True if this thread waits for the graph of that function.
bool IsExpected(const std::string& function);

// The expected function's graph, placed and in clusters, as it will be divided between devices; null if it cannot be
// called so.
void OfferGraph(std::unique_ptr<CallPlan> plan);

// The graph that the thread has seen since it expected one; null if none. Kernels are made with the function's library.
// The caller's.
DirectCall* TakeCall(const tensorflow::ProcessFunctionLibraryRuntime& library);

}  // namespace xpu::direct_call

#endif  // TENSORFLOW_PLUGIN_DIRECT_CALL_FUNCTION_GRAPH_H_
