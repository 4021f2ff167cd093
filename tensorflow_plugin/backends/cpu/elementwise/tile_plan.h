// The facts about a program that its runner needs before it has addresses. To find them out takes longer than a small
// program runs, so they are kept.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_PLAN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow_plugin/backends/cpu/elementwise/instructions.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cpu {

inline constexpr int64_t kTileElements = 1024;  // at a time, at most

// A row is what the innermost axis has. Operands of rows of at least so many elements are read as they lie, a row at a
// time, instead of being copied to tiles.
inline constexpr int64_t kFewestInRow = 32;

// How the operands of a command lie.
struct TileLayout {
  // The last two are of commands that are run by rows: elements that are adjacent in each row, and one for each row.
  enum class Walk : uint8_t { kContiguous, kScalar, kStrided, kInRow, kOfRow };

  Walk walk[Program::kMaxInputs] = {};
  uint16_t inputs_at[Program::kMaxOutputs] = {};  // for each output, a bit for each input with its address
  uint16_t stores_outputs = 0;                    // else results stay in tiles
  uint16_t by_rows = 0;

  bool Shares(int output, int input) const { return (inputs_at[output] >> input & 1) != 0; }
  bool operator==(const TileLayout& o) const;
};

// `desc.shape` has been merged (Merged).
TileLayout LayoutOf(const ElementwiseDesc& desc, const Args& args, bool stores_outputs);

// One instruction of a program.
struct TileStep {
  InstrFn run;
  uint16_t a, b, c, result;  // registers
  bool by_row;               // an operand does not lie row after row
  int8_t output;             // which one the result is written to directly; -1: none
  uint8_t result_size;       // bytes of an element
  Opcode op;
};

// A register's place in a runner's block, which has room for a tile.
struct TilePlace {
  uint16_t reg;
  uint16_t register_size;
  uint32_t offset;
};

// Immutable.
struct TilePlan {
  TileLayout layout;
  std::vector<TileStep> once;    // their operands are one element each; computed when a runner is made
  std::vector<TileStep> of_row;  // one element each for a row; computed for each row
  std::vector<TileStep> steps;   // computed for each tile
  // Registers of one element of which something reads a whole tile.
  std::vector<TilePlace> repeated, repeated_of_row;
  std::vector<TilePlace> tiles;  // other registers that are in the block: of all elements, or of those of some rows
  std::vector<int> stored;       // outputs that are not written directly
  int64_t raw = -1;              // where an input is gathered before its conversion; -1: none is
  int64_t block_bytes = 0;
  bool whole_range = true;          // nothing needs a tile: a range can be run in one go
  int64_t at_once = kTileElements;  // elements of a tile that are run
};

// A program made ready: its loops found and its constants laid out. Made once for each program and thread.
struct PreparedProgram {
  const Program* program = nullptr;
  std::vector<InstrFn> instrs;
  std::vector<InstrFn> of_one[2];                  // per instruction, with one element as that operand; null: none
  std::vector<InstrFn> loads;                      // per input
  std::vector<InstrFn> stores;                     // per output
  std::vector<std::unique_ptr<char[]>> constants;  // per constant: a tile full of it, from the next multiple of 64 on
  std::vector<int> last_use;                // per register: the last instruction that reads it; after all for outputs
  std::vector<std::vector<int>> read_last;  // per instruction: the registers that it is the last to read
  double cost_per_element = 0;              // ns, roughly, on one core

  // The plan for a layout. It is one of those that are kept, or `own` has it.
  const TilePlan& PlanFor(const TileLayout& layout, std::unique_ptr<TilePlan>* own) const;

 private:
  mutable std::vector<std::unique_ptr<TilePlan>> plans_;  // the calling thread's alone
};
// The calling thread's.
const PreparedProgram& Prepare(const Program* program);

// The first address of a buffer that is aligned.
inline constexpr size_t kTileAlignment = 64;
inline char* AlignedTile(char* buffer) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(buffer) + kTileAlignment - 1) & ~(kTileAlignment - 1));
}
// Repeats one register `n` times.
void RepeatRegister(const void* element, size_t register_size, int64_t n, void* to);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_PLAN_H_
