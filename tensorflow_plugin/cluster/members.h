// The ops of a cluster: their kernels, which are TensorFlow's objects, and how values pass between them.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_MEMBERS_H_
#define TENSORFLOW_PLUGIN_CLUSTER_MEMBERS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace xpu::cluster {

// How a kernel's arguments or results are to be allocated.
std::vector<tensorflow::AllocatorAttributes> AttributesOf(const tensorflow::MemoryTypeVector& types);

// Where a value comes from: output `index` of a member, or argument `index` of the cluster.
struct ValueRef {
  static constexpr int kArgument = -1;
  int member = kArgument;
  int index = 0;
};

// How a source is written in a NodeDef's input: "3:0", or ":2" for an argument.
std::string ToString(const ValueRef& source);
absl::Status ParseValueRef(const std::string& text, ValueRef* source);

// A loop that is being captured.
struct CapturedLoop {
  int64_t iterations = -1;  // that it will have; -1: not known
  int64_t begun = 0;        // of them
  int64_t commands_before = 0;
};

// While an object of this class lives, its thread captures. The object is told of each member before that runs, and
// shown each tensor that it gives. That includes the members of loops and of clusters within.
class CaptureObserver {
 public:
  // `on_iteration`: is asked before each iteration of a loop; false if the capture ends there. So many iterations,
  // `iterations_left`, may still begin, of all loops together.
  CaptureObserver(std::function<void(const tensorflow::OpKernel&)> on_member,
                  std::function<void(const tensorflow::Tensor&)> on_value,
                  std::function<bool(CapturedLoop*)> on_iteration, const int64_t* iterations_left);
  ~CaptureObserver();
  CaptureObserver(const CaptureObserver&) = delete;
  CaptureObserver& operator=(const CaptureObserver&) = delete;

  // The calling thread's; null if it does not capture.
  static const CaptureObserver* Current();
  void BeginMember(const tensorflow::OpKernel& member) const { on_member_(member); }
  void ShowValue(const tensorflow::Tensor& value) const { on_value_(value); }
  bool BeginIteration(CapturedLoop* loop) const { return on_iteration_(loop); }
  int64_t iterations_left() const { return *iterations_left_; }

 private:
  const std::function<void(const tensorflow::OpKernel&)> on_member_;
  const std::function<void(const tensorflow::Tensor&)> on_value_;
  const std::function<bool(CapturedLoop*)> on_iteration_;
  const int64_t* const iterations_left_;
};

class Members {
 public:
  struct Member {
    std::shared_ptr<tensorflow::OpKernel> kernel;
    std::vector<ValueRef> inputs;
    std::vector<tensorflow::AllocatorAttributes> input_attrs, output_attrs;
    int first_value = 0;          // the number of its first output among those of all members
    tensorflow::Tensor constant;  // of a constant of a few bytes: its value, in host memory
  };

  // Makes the kernels of the nodes of `graph`, which are in an order that may run, on the device of `construction`.
  // `results` are the values that will be taken.
  absl::Status Create(tensorflow::OpKernelConstruction* construction, const tensorflow::GraphDef& graph,
                      std::vector<ValueRef> results);

  // Those of the members that `results` need, and the members `also`, by number, with the same kernels and arguments.
  // `given`: inputs, of which member and which one, that are an argument of this number in the part.
  Members Part(const std::vector<ValueRef>& results, const std::vector<int>& also = {},
               const std::map<std::pair<int, int>, int>& given = {}) const;

  const std::vector<Member>& members() const { return members_; }
  const std::vector<ValueRef>& results() const { return results_; }

  // Where members run: on the device of the cluster, or where their commands are recorded.
  struct Environment {
    tensorflow::DeviceBase* device = nullptr;
    tensorflow::ResourceMgr* resources = nullptr;
    std::vector<tensorflow::Tensor> arguments;  // of the cluster
  };

  // One after the other as TensorFlow's executor would run them, on the calling thread; values that nobody reads any
  // more are let go.
  class Execution {
   public:
    // `outer`: the execution of the op that the members are of. All arguments live longer. `invariant_arguments`:
    // arguments that the environment has for as long as the run.
    Execution(const Members& members, tensorflow::OpKernelContext* outer, Environment& environment,
              const std::vector<int>& invariant_arguments = {});

    // Once more from the first member on.
    void StartOver();
    // Runs the members before `end` that have not run. An error is the member's, which it names. `keep`: arguments stay
    // in the environment even if nobody reads them any more.
    absl::Status RunUntil(int end, bool keep);
    // A value. The last who takes one gets it for himself.
    tensorflow::Tensor TakeValue(const ValueRef& source, bool keep = false);

   private:
    absl::Status RunMember(const Member& member, tensorflow::Tensor* outputs);

    const Members& members_;
    Environment& environment_;
    tensorflow::OpKernelContext::Params params_;
    int next_ = 0;
    std::vector<tensorflow::Tensor> values_;
    std::vector<int> uses_;  // of values, that are still to come
    std::vector<int> argument_uses_, all_argument_uses_;
    std::vector<tensorflow::Tensor> inputs_;
    absl::InlinedVector<tensorflow::TensorValue, 4> input_values_;
  };

  // Runs all of them and takes their results.
  absl::Status RunAll(tensorflow::OpKernelContext* outer, Environment& environment,
                      std::vector<tensorflow::Tensor>* results) const;

 private:
  void CountUse(const ValueRef& source);
  int NumberOf(const ValueRef& value) const { return members_[value.member].first_value + value.index; }

  std::vector<Member> members_;
  std::vector<ValueRef> results_;
  // How often each value is read: by members, and as a result.
  std::vector<int> uses_, argument_uses_;
};

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_MEMBERS_H_
