// Runs an elementwise program over ranges of its (flattened) shape, a tile at a time. So intermediate values never
// leave the cache nearest to the core.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_RUNNER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow_plugin/backends/cpu/elementwise/instructions.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cpu {

// A tile-sized buffer. Freed ones are kept by their thread for the next runner: small programs cost less than malloc.
struct RecycleTile {
  size_t register_size = 0;
  void operator()(char* buffer) const;
};
using TileBuffer = std::unique_ptr<char[], RecycleTile>;

// A program made ready: its loops found and its constants laid out. Immutable; made once per program and thread.
struct PreparedProgram {
  const Program* program = nullptr;
  std::vector<InstrFn> instrs;
  std::vector<InstrFn> of_one[2];                  // per instruction, with one element as that operand; null: none
  std::vector<InstrFn> loads;                      // per input
  std::vector<InstrFn> stores;                     // per output
  std::vector<std::unique_ptr<char[]>> constants;  // per constant: a tile full of it
  std::vector<int> last_use;                // per register: the last instruction that reads it; after all for outputs
  std::vector<std::vector<int>> read_last;  // per instruction: the registers that it is the last to read
  double cost_per_element = 0;              // ns, roughly, on one core
};
const PreparedProgram& Prepare(const Program* program);

class TileRunner {
 public:
  static constexpr int64_t kTile = 1024;  // elements at a time, at most

  // `desc.shape` must have been merged (MergeDims), so that a contiguous input has rank 1 and stride 1. Keeps
  // references to both arguments. One per thread. With outputs in args.out null, results stay in tiles (see Result).
  TileRunner(const ElementwiseDesc& desc, const Args& args, bool store_outputs = true);

  // Runs the elements [begin, begin + n) in row-major order. Without stored outputs n must be at most kTile.
  void Run(int64_t begin, int64_t n);
  // Without stored outputs: the register of output i for the last Run; valid until the next one.
  const void* Result(int i) const { return reg_[prepared_.program->outputs()[i]]; }
  const Status& status() const { return status_; }

 private:
  enum class Walk : uint8_t { kContiguous, kScalar, kStrided };
  void ReadElement(int input);
  void ChooseSteps();
  void* Filled(int reg);
  void PlaceResults();
  int64_t BytesAtOnce() const;  // of an element, in all registers
  void RunTile(int64_t begin, int64_t n);
  void Gather(int input, int64_t begin, int64_t n, void* dst) const;
  void* NewBuffer(size_t register_size);

  const ElementwiseDesc& desc_;
  const Args& args_;
  const PreparedProgram& prepared_;
  const bool store_outputs_;
  bool whole_range_ = true;  // nothing needs a tile: the range can be run in one go
  int64_t at_once_ = kTile;  // elements of a tile that Run fills
  Walk walk_[Program::kMaxInputs];
  // Registers of one element for all: inputs that are, constants, and what is computed from those alone.
  bool is_one_[Program::kMaxRegisters];
  alignas(16) char element_[Program::kMaxRegisters][16];  // of inputs and results that are, as a register holds it
  bool in_full_[Program::kMaxRegisters];                  // something reads a tile of them
  // A step that computes one instruction for each tile.
  struct TileStep {
    InstrFn run;
    int instr;
  };
  TileStep steps_[Program::kMaxRegisters];
  int num_steps_ = 0;
  void* tile_[Program::kMaxRegisters];            // buffer of a register, or null if it is read or written in place
  const void* reg_[Program::kMaxRegisters];       // where each register is for the current tile
  int8_t direct_output_[Program::kMaxRegisters];  // output number that a result is written to directly, or -1
  void* raw_ = nullptr;                           // a gathered input before conversion
  std::vector<TileBuffer> buffers_;
  Status status_;
};

// The descriptor with its dimensions merged.
ElementwiseDesc Merged(const ElementwiseDesc& desc);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_RUNNER_H_
