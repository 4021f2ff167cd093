// Turns the instructions of a program into the steps of a chain.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_MAKER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_MAKER_H_

#include <cstddef>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

class ChainMaker {
 public:
  // All outlive this object. Without `args` the steps have no operands, and `frame` may be null.
  ChainMaker(const ElementwiseDesc& desc, const Args* args, ScratchFrame* frame, ChainEpilogue* chain)
      : desc_(desc), p_(*desc.program), args_(args), frame_(frame), chain_(*chain) {}

  // The register whose value the steps have computed. A maker begins with the program's first input.
  int current() const { return current_; }
  void BeginWith(int reg) { current_ = reg; }
  // The value that is there now is stored. So no step may be joined with the one before.
  void NoteStored() { stored_before_ = chain_.num_steps; }

  // Adds what the instruction with this number does. False if it is no step.
  bool Add(size_t number);
  // True if no kept value waits for its step.
  bool IsComplete() const { return kept_ < 0; }

  // Finds the operand in a register, for each column or element, or for all; false if it is none of these.
  bool Operand(int reg, ChainStep* step);
  // True if an instruction from number `first` on reads a register.
  bool IsRead(int reg, size_t first) const;

 private:
  using Kind = ChainStep::Kind;
  using Reads = ChainStep::Reads;

  bool Append(ChainStep step);
  // True if it has become part of the last step.
  bool Joins(const ChainStep& step);
  // Gives the step its operand, which begins at `data`.
  bool Read(const float* data, ChainStep* step);

  const ElementwiseDesc& desc_;
  const Program& p_;
  const Args* const args_;
  ScratchFrame* const frame_;
  ChainEpilogue& chain_;
  int current_ = 0, kept_ = -1;  // the register that the last step made, and one that is needed again
  int stored_before_ = -1;       // a number of steps
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_MAKER_H_
