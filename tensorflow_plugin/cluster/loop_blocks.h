// Iterations of a loop as captured blocks, for loops whose length changes from call to call.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_LOOP_BLOCKS_H_
#define TENSORFLOW_PLUGIN_CLUSTER_LOOP_BLOCKS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/loop_parts.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/replay.h"

namespace xpu::cluster {

// The host counts the iterations, and no command of the body depends on the count. Then a list of 64 iterations serves
// any 64 of them, and some lists serve a loop of any length. A list reads numbers that the body computes with
// (tf.cast(i, tf.float32)) from the host's memory. Rows and elements that the body reads at the count are looked up
// before a block. Values that it puts into lists go there after the block.
class LoopBlocks {
 public:
  explicit LoopBlocks(LoopParts parts) : parts_(std::move(parts)) {}

  // Runs blocks from the iteration on that `environment` stands at, and brings `environment` to where they end. It ends
  // where there is no list, and none is worth capturing. The caller runs the iterations that are left.
  absl::Status Advance(tensorflow::OpKernelContext* ctx, Members::Environment* environment);

 private:
  static constexpr int kSizes[] = {64, 8, 1};
  static constexpr int kNumSizes = 3;
  // The lists for one signature.
  struct Lists {
    std::string signature;
    std::shared_ptr<const Captured> captured[kNumSizes];
    bool failed[kNumSizes] = {};
    int64_t awaited[kNumSizes] = {};  // iterations that it would have run
  };
  class Ahead;
  class Before;

  bool Look(tensorflow::OpKernelContext* ctx, const Members::Environment& environment, Invocation* invocation,
            ClusterVariables* variables) const;
  std::string SignatureOf(const Invocation& invocation, const std::vector<tensorflow::Tensor>& elements) const;
  std::shared_ptr<Lists> FindLists(const std::string& signature);
  // Notes that so many iterations are to come.
  static void Await(int64_t iterations, Lists* lists);
  // The list that runs next; null if there is none. `size`: its number. `elements`: those of an iteration.
  std::shared_ptr<const Captured> Choose(tensorflow::OpKernelContext* ctx, Device& device, const Invocation& invocation,
                                         const std::vector<tensorflow::Tensor>& elements, int64_t iterations,
                                         Lists* lists, int* size);
  std::shared_ptr<const Captured> CaptureBlock(tensorflow::OpKernelContext* ctx, Device& device,
                                               const Invocation& invocation,
                                               const std::vector<tensorflow::Tensor>& elements, int64_t count) const;
  // The reason why a captured block cannot be used; null if it can.
  const char* Trouble(const Captured& captured, const Invocation& invocation) const;
  std::vector<tensorflow::Tensor> NumbersOf(const Ahead& ahead, int64_t first, int64_t count) const;
  absl::Status PutIntoLists(tensorflow::OpKernelContext* ctx, const Ahead& ahead, int64_t first, int64_t count,
                            const std::vector<tensorflow::Tensor>& results, Members::Environment* environment) const;

  const LoopParts parts_;
  const tensorflow::Tensor nothing_;

  tensorflow::mutex mutex_;
  std::list<std::shared_ptr<Lists>> lists_;  // the last used ones first
};

// Counts an iteration that ran outside of a block.
void NoteIteration();

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_LOOP_BLOCKS_H_
