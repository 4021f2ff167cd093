// Runs an elementwise program over ranges of its (flattened) shape, a tile at a time. So intermediate values never
// leave the cache nearest to the core.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_RUNNER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_RUNNER_H_

#include <cstdint>
#include <memory>

#include "tensorflow_plugin/backends/cpu/elementwise/tile_plan.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/small_vector.h"

namespace xpu::cpu {

// Memory for the tiles of a runner. Freed blocks are kept by their thread for the next runner: small programs cost less
// than malloc.
class TileBlock {
 public:
  struct Memory {
    std::unique_ptr<char[]> data;
    int64_t bytes = 0;
  };

  explicit TileBlock(int64_t bytes);
  ~TileBlock();
  TileBlock(const TileBlock&) = delete;
  TileBlock& operator=(const TileBlock&) = delete;

  char* at(int64_t offset) const { return begin_ + offset; }

 private:
  Memory memory_;
  char* begin_ = nullptr;
};

class TileRunner {
 public:
  static constexpr int64_t kTile = kTileElements;  // elements at a time, at most

  // `desc.shape` must have been merged (MergeDims), so that a contiguous input has rank 1 and stride 1. Keeps
  // references to both arguments. One per thread. With outputs in args.out null, results stay in tiles (see Result).
  TileRunner(const ElementwiseDesc& desc, const Args& args, bool store_outputs = true);

  // Runs the elements [begin, begin + n) in row-major order. Without stored outputs n must be at most kTile, unless
  // the result is an input.
  void Run(int64_t begin, int64_t n);
  // Without stored outputs: the register of output i for the last Run; valid until the next one.
  const void* Result(int i) const { return reg_[prepared_.program->outputs()[i]]; }
  // True if output i is an input as it lies. Without stored outputs, and for programs of one output.
  bool IsInput(int i) const;
  const Status& status() const { return status_; }

 private:
  using Walk = TileLayout::Walk;
  void ReadElement(int input, const void* at);
  void RunOnce();
  void RunInTiles(int64_t begin, int64_t n);
  void RunByRows(int64_t begin, int64_t n);
  void ListRowInputs();
  void FindRow(int64_t row);
  void BeginRows(int64_t rows);
  void RunTile(int64_t begin, int64_t rows, int64_t n);
  void ReadInput(int input, int64_t begin, int64_t rows, int64_t n);
  void Note(bool failed, Opcode op);
  void Gather(int input, int64_t begin, int64_t n, void* dst) const;

  const ElementwiseDesc& desc_;
  const Args& args_;
  const PreparedProgram& prepared_;
  std::unique_ptr<TilePlan> own_plan_;  // if the program does not keep it
  const TilePlan& plan_;
  TileBlock block_;
  alignas(16) char element_[Program::kMaxRegisters][16];  // registers of one element for all, as a register holds it
  void* tile_[Program::kMaxRegisters];  // a register's place in the block, or null if it is read or written in place
  const void* reg_[Program::kMaxRegisters];   // where each register is for the current tile
  int64_t row_step_[Program::kMaxRegisters];  // bytes from there to where the next row of the tile has it
  // Where element 0 of a contiguous input is, and where it would be if all rows were like the current one. One that has
  // an element for each row: where that is.
  const char* from_[Program::kMaxInputs];
  int64_t from_step_[Program::kMaxInputs];  // the bytes by which that changes from row to row
  // The inputs that are not the same or contiguous in all rows.
  struct RowInput {
    int input;
    bool is_one;   // an element for each row
    int64_t size;  // bytes of an element
  };
  SmallVector<RowInput, 4> row_inputs_;
  Status status_;
};

// The descriptor with its dimensions merged.
ElementwiseDesc Merged(const ElementwiseDesc& desc);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TILE_RUNNER_H_
