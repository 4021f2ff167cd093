// Proofs that values are finite, by bounds. A sum is at most the sum of the bounds of its terms, and so on. A proof
// ends at values of which nothing is known but what a command finds out when the list runs: the sources.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_QUANTIZATION_FINITE_VALUES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_QUANTIZATION_FINITE_VALUES_H_

#include <map>
#include <optional>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

class FiniteValues {
 public:
  // Bounds are powers of two. Those of the sources' magnitudes are chosen so that usual networks stay below the limit
  // of floats between one FakeQuant and the next. `Known` is the bound of values that are computed once, such as
  // weights.
  static constexpr int kLog2OfKnown = 30, kLog2OfOthers = 64;

  // Bytes of a buffer, all of them floats, and the command that writes them; -1: they are given.
  struct Source {
    ByteRange range;
    int writer;
  };
  using Sources = std::map<int, Source>;  // by buffer

  // `known`, by buffer: computed once.
  FiniteValues(const CommandList& list, const BufferUses& uses, std::vector<bool> known)
      : list_(list), uses_(uses), known_(std::move(known)), of_buffers_(list.buffers.size()) {}

  // Input k of a command is finite if its sources keep to their bounds. None if that cannot be proved.
  std::optional<Sources> SourcesOfInput(int command, int k);

  // Has proofs rely on this: no result of the command is beyond 2^log2.
  void Bound(int command, int log2) { of_commands_[command] = log2; }

  int Log2Of(int buffer) const { return known_[buffer] ? kLog2OfKnown : kLog2OfOthers; }

 private:
  struct Fact {
    int log2 = 0;
    Sources sources;
    void Add(const Fact& other);
  };
  // A longer chain of commands has a source in between.
  static constexpr int kMostDepth = 256;

  struct OfBuffer {
    bool begun = false;
    std::optional<Fact> fact;
  };

  std::optional<Fact> OfInput(const Command& command, int k);
  std::optional<Fact> OfComputed(int buffer);
  std::optional<Fact> OfOutput(int command, int buffer);
  // The value of a register of an elementwise program.
  std::optional<Fact> OfProgram(const Command& command, const ElementwiseDesc& desc, int reg);
  std::optional<Fact> OfWriter(int buffer) const;

  const CommandList& list_;
  const BufferUses& uses_;
  const std::vector<bool> known_;
  std::vector<OfBuffer> of_buffers_;
  std::map<int, int> of_commands_;
  int depth_ = 0;
};

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_QUANTIZATION_FINITE_VALUES_H_
