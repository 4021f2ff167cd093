// Commands over numbered buffers, recorded before their memory exists. A cluster of ops enqueues them as one list. A
// device makes it ready to run (Device::Prepare).
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_COMMAND_LIST_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_COMMAND_LIST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

// The commands of a stream that are no primitives.
struct CopyBytes {  // in[0] to out[0], both on the device
  size_t bytes = 0;
};
struct FillBytes {
  uint8_t value = 0;
  size_t bytes = 0;
};
struct FillWords {
  uint32_t value = 0;
  size_t bytes = 0;  // a multiple of 4
};
struct CopyConstant {  // from the host; the bytes belong to the list
  std::shared_ptr<const std::vector<char>> bytes;
};
struct CopyFromHost {  // in[0], in the host's memory, to out[0]
  size_t bytes = 0;
};
struct CopyToHost {  // in[0] to out[0], in the host's memory; the thread that runs the list waits for it
  size_t bytes = 0;
};

#define XPU_DESC(name) , name##Desc
using Descriptor =
    std::variant<CopyBytes, FillBytes, FillWords, CopyConstant, CopyFromHost, CopyToHost XPU_PRIMITIVES(XPU_DESC)>;
#undef XPU_DESC

// Where an address lies: so many bytes into a buffer of the list.
struct BufferSlice {
  static constexpr int kNowhere = -1;  // a null address, of an operand without elements
  int buffer = kNowhere;
  int64_t offset = 0;

  // The address, buffer i lying at addresses[i].
  char* In(char* const* addresses) const { return buffer == kNowhere ? nullptr : addresses[buffer] + offset; }
};

struct Buffer {
  enum class Kind : uint8_t {
    kInput,     // the code that runs the list provides it: an input, or the value of a variable
    kOnHost,    // the same, in the host's memory: CopyFromHost and CopyToHost alone touch it
    kFixed,     // it is at `address` on the device, which outlives the list
    kComputed,  // the list's commands make it: some write it before any reads it
  };
  Kind kind = Kind::kComputed;
  int64_t bytes = 0;              // of a fixed one 0: not known
  const void* address = nullptr;  // of a fixed one
};

// The failure of a command, in the words of its op. `failure` is the command's own, and `indices` are those that it
// read, if it has any (IndicesOf).
using DescribeError = std::function<Status(const Status& failure, const std::vector<int64_t>& indices)>;

struct Command {
  Descriptor desc;
  Footprint footprint;  // of primitives
  std::vector<BufferSlice> in, out;
  BufferSlice workspace;
  int origin = 0;         // which of the cluster's ops it is of
  DescribeError explain;  // set if it may fail on data; later commands rely on its success

  // A condition, which a pass has added, may fail on data. It is no failure of an op: the list as it was before that
  // pass has to run instead.
  bool is_condition = false;

  // False if it is known that no update of a variable comes before this command's op in the program.
  bool follows_updates = true;

  // A device may run strands side by side. Commands of one strand keep their order, and touch nothing that an adjacent
  // strand writes. Strands are adjacent if their commands are, and their numbers ascend. A lower number comes after
  // all of them, as does a command of no strand.
  static constexpr int kNoStrand = -1;
  int strand = kNoStrand;

  bool may_fail() const { return explain != nullptr; }
  // The thread that runs the list waits until it has run.
  bool is_awaited() const { return may_fail() || std::holds_alternative<CopyToHost>(desc); }
};

// The input of a command that holds indices, and their type; -1 where none does.
struct IndexOperand {
  int input = -1;
  DType type = DType::kInvalid;
};
IndexOperand IndicesOf(const Command& command);
// The extents that they lie in.
const Dims& DimsOfIndices(const Command& command);
// True if a command has indices and succeeds when all of them are in range. A scatter that divides integers may also
// fail for a zero.
bool SucceedsWithinRange(const Command& command);

// The bytes of a buffer, from `begin` to `end`, outside which a command does not touch it through one of its places.
struct ByteRange {
  int64_t begin, end;
  bool Overlaps(const ByteRange& o) const { return begin < o.end && o.begin < end; }
  bool Contains(const ByteRange& o) const { return begin <= o.begin && o.end <= end; }
};
ByteRange RangeOfInput(const Command& command, size_t k);
ByteRange RangeOfOutput(const Command& command, size_t k);

struct CommandList {
  std::vector<Buffer> buffers;
  std::vector<Command> commands;
  // Buffers whose contents are needed after the list has run: results, new values of variables.
  std::vector<int> live_out;
};

// True if a command writes into an input of the list, such as the buffer of a variable.
bool WritesInput(const CommandList& list, const Command& command);

// The end of the strands that begin with a command: the first one after it that is of none of them. A command of no
// strand is alone.
int EndOfStrands(const CommandList& list, int begin);

// The places of a list's own buffers in one block of memory. Buffers that are not needed at the same time share memory.
struct MemoryPlan {
  int64_t bytes = 0;             // of the block
  std::vector<int64_t> offsets;  // by buffer; kElsewhere for those that are given, fixed, live out or never touched
  static constexpr int64_t kElsewhere = -1;
};

// One line per command, for people: "3: Elementwise (Mul float) b7, b2 -> b9".
std::string ToString(const Command& command);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_COMMAND_LIST_H_
