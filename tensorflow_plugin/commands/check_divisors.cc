// Finds integer divisions that cannot fail.
#include <algorithm>
#include <functional>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

bool HasZero(const char* bytes, int64_t count, size_t size) {
  for (int64_t i = 0; i < count; ++i, bytes += size) {
    if (std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; })) return true;
  }
  return false;
}

}  // namespace

void FindSafeDivisions(const std::function<std::vector<char>(int buffer)>& constant, CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  const auto is_safe = [&](const Command& command, const Program& program, const Instr& instr) {
    if (!CanFail(instr)) return true;
    if (instr.op == Opcode::kPow) return false;  // a negative exponent fails
    const int number = instr.b - program.num_inputs();
    if (number >= 0) {
      if (number >= static_cast<int>(program.constants().size())) return false;
      const Constant& divisor = program.constants()[number];
      return divisor.re != 0 || divisor.bits != 0;
    }
    const BufferSlice& place = command.in[instr.b];
    if (place.buffer == BufferSlice::kNowhere || list->buffers[place.buffer].kind != Buffer::Kind::kFixed ||
        !uses.buffers[place.buffer].writers.empty()) {
      return false;
    }
    const ByteRange range = RangeOfInput(command, instr.b);
    const std::vector<char> bytes = constant(place.buffer);
    const int64_t size = static_cast<int64_t>(SizeOf(instr.type));
    return range.begin >= 0 && range.begin < range.end && range.end <= static_cast<int64_t>(bytes.size()) &&
           !HasZero(bytes.data() + range.begin, (range.end - range.begin) / size, SizeOf(instr.type));
  };
  for (Command& command : list->commands) {
    const auto* desc = std::get_if<ElementwiseDesc>(&command.desc);
    if (desc == nullptr || !command.may_fail()) continue;
    const std::vector<Instr>& instrs = desc->program->instrs();
    if (std::all_of(instrs.begin(), instrs.end(),
                    [&](const Instr& instr) { return is_safe(command, *desc->program, instr); })) {
      command.explain = nullptr;
    }
  }
}

}  // namespace xpu::commands
