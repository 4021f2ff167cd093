// A graph as a row of steps, and their kernels.
#ifndef TENSORFLOW_PLUGIN_DIRECT_CALL_CALL_PLAN_H_
#define TENSORFLOW_PLUGIN_DIRECT_CALL_CALL_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow_plugin/direct_call/direct_call.h"

namespace xpu::direct_call {

// Values are numbered through: the arguments first, then what each step gives.
struct CallPlan {
  struct ValuePlacement {
    tensorflow::DataType type = tensorflow::DT_INVALID;
    std::string device;
    bool in_host_memory = true;
  };
  struct PlannedOp {
    tensorflow::NodeDef def;
    std::string device;
    std::vector<int> inputs;  // values
    int first_output = 0;     // the value that its first result is
  };
  std::vector<ValuePlacement> arguments, results;
  std::vector<PlannedOp> steps;    // in an order that may run
  std::vector<int> result_values;  // by result
  int num_values = 0;
};

// Makes the steps' kernels; null if one of them cannot run on the thread that calls it.
std::unique_ptr<DirectCall> MakeCall(const CallPlan& plan, const tensorflow::ProcessFunctionLibraryRuntime& library);

}  // namespace xpu::direct_call

#endif  // TENSORFLOW_PLUGIN_DIRECT_CALL_CALL_PLAN_H_
