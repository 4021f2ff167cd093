// Stretches of commands that can run part by part. Parts are cut along the first axis of values, such as the images of
// a batch.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_BATCH_STRETCHES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_BATCH_STRETCHES_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/split_batch.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

// Commands [begin, begin + commands.size()) in so many parts. No part writes what another one touches, so parts may run
// in any order.
struct BatchStretch {
  int begin = 0;
  int64_t parts = 1;
  std::vector<BatchParts> commands;
  std::set<int> even;  // buffers of which part i touches the i-th of as many equal parts

  int end() const { return begin + static_cast<int>(commands.size()); }
};

// Finds stretches of a list, and puts their parts in place of their commands.
class BatchStretches {
 public:
  // `hoisted` holds the commands that pack filters. All stay as they are until Emit.
  BatchStretches(const Capabilities& can, const CommandList& list, CommandList* hoisted);

  // The longest stretch of commands [begin, end) that begins with the first one; it may have none.
  BatchStretch Longest(int begin, int end, int64_t parts) const;

  // The bytes of a command's values that are of the batch; -1 if it cannot be cut in two.
  int64_t BytesOfBatch(const Command& command) const;

  // The bytes of the values that nothing but the stretch needs, and that are divided evenly.
  int64_t BytesInside(const BatchStretch& stretch) const;

  // Appends the commands of each part, one part after the other, to `to`. Such values get buffers of a part in
  // `buffers`. Filters are packed for a part then. `as_strands`: part i is strand i.
  void Emit(const BatchStretch& stretch, bool as_strands, std::vector<Buffer>* buffers, std::vector<Command>* to);

 private:
  bool IsInside(const BatchStretch& stretch, int buffer) const;
  bool FilterFits(const BatchParts& parts) const;

  const Capabilities& can_;
  const CommandList& list_;
  CommandList& hoisted_;
  const BufferUses uses_;
  std::map<int, int> writer_of_hoisted_;  // commands that run once, by the buffer that they write
};

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_BATCH_STRETCHES_H_
