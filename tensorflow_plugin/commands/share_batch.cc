// Cuts stretches of commands along the batch into strands, which a device runs side by side.
//
// Threads that share each command meet after each. In a list of many small commands, such as the steps of a recurrent
// layer, that takes as long as the commands. A strand runs all commands of a stretch for its part of the batch. Threads
// share larger commands one by one: if one thread is held up, the others take its part.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tensorflow_plugin/commands/batch_stretches.h"
#include "tensorflow_plugin/commands/cost.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

// Simple instructions of a stretch that are worth it: to begin strands takes some microseconds. The mean of its
// commands is at most the second number, some ten microseconds of work. To share larger ones costs little.
constexpr int64_t kFewestOperations = 1 << 20, kMostOfCommand = 1 << 19;
// A matrix of more bytes than a core's own cache may hold is read by each strand, from memory. That takes longer than
// to multiply it with fewer rows.
constexpr int64_t kBytesOfCore = 1 << 19, kFewestRows = 16;

// In simple instructions, roughly; those of products are multiplications.
template <typename Desc>
int64_t Operations(const Desc& desc) {
  if constexpr (std::is_same_v<Desc, MatMulDesc>) {
    return desc.batch.num_elements() * desc.m * desc.n * desc.k;
  } else if constexpr (std::is_same_v<Desc, ConvolutionDesc>) {
    int64_t product = desc.batch * desc.out_channels * desc.in_channels / desc.groups;
    for (int i = 0; i < desc.spatial_rank; ++i) product *= desc.output[i] * desc.filter[i];
    return product;
  } else if constexpr (std::is_same_v<Desc, ElementwiseDesc>) {
    return desc.shape.num_elements() * CostOf(*desc.program);
  } else if constexpr (std::is_same_v<Desc, ReduceDesc>) {
    return desc.source.shape.num_elements() * (1 + CostOf(*desc.source.program));
  }
  return 0;
}

class BatchSharer {
 public:
  BatchSharer(const Capabilities& can, CommandList* list, CommandList* hoisted)
      : can_(can), list_(*list), stretches_(can, *list, hoisted) {}

  void Run() {
    const int size = static_cast<int>(list_.commands.size());
    std::vector<int> limit(size, size);  // by command: the first one from it on that may be of no strand
    for (int i = size - 1; i >= 0; --i) {
      limit[i] = !MayBeOfStrand(list_.commands[i]) ? i : i + 1 < size ? limit[i + 1] : size;
    }
    std::vector<Command> shared;
    for (int i = 0, end; i < size; i = end) {
      const BatchStretch stretch = stretches_.Longest(i, limit[i], can_.Strands());
      end = std::max(stretch.end(), i + 1);
      if (Pays(stretch)) {
        stretches_.Emit(stretch, /*as_strands=*/true, &list_.buffers, &shared);
      } else {
        for (int k = i; k < end; ++k) shared.push_back(list_.commands[k]);
      }
    }
    list_.commands = std::move(shared);
  }

 private:
  bool MayBeOfStrand(const Command& command) const {
    const int64_t bytes = stretches_.BytesOfBatch(command), cache = can_.CacheBytes();
    if (bytes < 0 || (cache > 0 && bytes > cache)) return false;
    const auto* product = std::get_if<MatMulDesc>(&command.desc);
    return product == nullptr || !product->batch.empty() || product->m >= kFewestRows * can_.Strands() ||
           command.footprint.in[1].end <= kBytesOfCore;
  }

  static bool Pays(const BatchStretch& stretch) {
    int64_t operations = 0;
    for (const BatchParts& parts : stretch.commands) {
      operations += stretch.parts * std::visit([](const auto& desc) { return Operations(desc); }, parts.first.desc);
    }
    const auto commands = static_cast<int64_t>(stretch.commands.size());
    return commands > 1 && operations >= kFewestOperations && operations <= commands * kMostOfCommand;
  }

  const Capabilities& can_;
  CommandList& list_;
  BatchStretches stretches_;
};

}  // namespace

void ShareBatch(const Capabilities& can, CommandList* list, CommandList* hoisted) {
  if (can.Strands() > 1) BatchSharer(can, list, hoisted).Run();
}

}  // namespace xpu::commands
