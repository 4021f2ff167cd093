// Runs a stretch of commands for some images of a batch at a time, so that what they write and read stays in a cache.
//
// A convolution writes eight images, more than a cache holds, and the next one reads them from memory. Four at a time
// are still in the cache. Such a stretch becomes as many copies of its commands as there are parts of the batch. Values
// that only the stretch needs get buffers of one part, and the memory plan gives all parts the same place.
//
// A part of one command may read only the same part of what another one writes. So each buffer that the stretch writes
// is divided evenly, and a command belongs to the stretch only if its parts stay in theirs.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/split_batch.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// Commands on small values between two on large ones, such as squeeze and excitation.
constexpr int kFewBetween = 12;
constexpr int64_t kMostParts = 64;

class BatchTiler {
 public:
  BatchTiler(const Capabilities& can, CommandList* list, CommandList* hoisted)
      : can_(can), cache_(can.CacheBytes()), list_(*list), hoisted_(*hoisted), uses_(UsesOf(*list)) {
    for (size_t i = 0; i < hoisted_.commands.size(); ++i) {
      for (const BufferSlice& place : hoisted_.commands[i].out) writer_of_hoisted_[place.buffer] = static_cast<int>(i);
    }
  }

  void Run() {
    wanted_.reserve(list_.commands.size());
    for (const Command& command : list_.commands) wanted_.push_back(PartsWanted(command));
    const int size = static_cast<int>(list_.commands.size());
    for (int i = 0; i < size;) {
      Stretch stretch = LongestFrom(i);
      const int end = std::max(stretch.end, i + 1);
      if (Shorten(&stretch) && 2 * ValuesInside(stretch) > cache_) {
        Emit(stretch);
        i = stretch.end;
      } else {
        for (; i < end; ++i) tiled_.push_back(std::move(list_.commands[i]));
      }
    }
    list_.commands = std::move(tiled_);
  }

 private:
  struct Stretch {
    int begin = 0, end = 0;  // commands
    int64_t parts = 1;
    std::vector<BatchParts> commands;
  };

  // How many parts leave so little of a command's values that the next one finds them in the cache. 0: it has none.
  int64_t PartsWanted(const Command& command) const {
    const std::optional<BatchParts> halves = SplitBatch(can_, command, 2);
    if (!halves) return 0;
    int64_t bytes = 0;
    const auto add = [&bytes](const std::vector<int64_t>& steps, const Operand* operands) {
      for (size_t k = 0; k < steps.size(); ++k) bytes += steps[k] != 0 ? operands[k].end - operands[k].begin : 0;
    };
    add(halves->in_steps, command.footprint.in);
    add(halves->out_steps, command.footprint.out);
    int64_t parts = 1;
    while (parts < kMostParts && bytes > parts * cache_) parts *= 2;
    return parts;
  }

  // From a command on large values to the last one after it that wants as many parts, or half as many.
  Stretch LongestFrom(int begin) const {
    Stretch stretch{begin, begin, wanted_[begin], {}};
    if (stretch.parts < 2) return stretch;
    const int size = static_cast<int>(wanted_.size());
    for (int i = begin; i < size && wanted_[i] > 0 && i - stretch.end < kFewBetween; ++i) {
      stretch.parts = std::max(stretch.parts, wanted_[i]);
      if (2 * wanted_[i] >= stretch.parts && wanted_[i] > 1) stretch.end = i + 1;
    }
    return stretch;
  }

  // Leaves the commands at the end out that cannot be in it. False if it is not worth having then.
  bool Shorten(Stretch* stretch) const {
    for (; stretch->parts > 1; stretch->parts /= 2) {
      Stretch shorter = *stretch;
      while (shorter.end - shorter.begin > 1) {
        const int problem = FirstProblem(&shorter);
        if (problem == shorter.end) {
          *stretch = std::move(shorter);
          return true;
        }
        shorter.end = problem;
      }
    }
    return false;
  }

  // The first command that has no such parts, or whose parts read or write another part of a buffer; `end` if none.
  int FirstProblem(Stretch* stretch) const {
    stretch->commands.clear();
    std::map<int, int64_t> written;  // bytes of a part, by buffer
    for (int i = stretch->begin; i < stretch->end; ++i) {
      std::optional<BatchParts> parts = SplitBatch(can_, list_.commands[i], stretch->parts);
      if (!parts || !FilterFits(*parts)) return i;
      for (const BufferSlice& place : parts->first.out) {
        if (place.buffer == BufferSlice::kNowhere) return i;
        const int64_t bytes = list_.buffers[place.buffer].bytes;
        if (bytes % stretch->parts != 0) return i;
        written[place.buffer] = bytes / stretch->parts;
      }
      stretch->commands.push_back(*std::move(parts));
    }
    for (int i = stretch->begin; i < stretch->end; ++i) {
      const BatchParts& parts = stretch->commands[i - stretch->begin];
      const auto stays = [&](const BufferSlice& place, const ByteRange& range, int64_t step) {
        const auto part = written.find(place.buffer);
        return part == written.end() || (step == part->second && range.begin >= 0 && range.end <= part->second);
      };
      for (size_t k = 0; k < parts.first.in.size(); ++k) {
        if (!stays(parts.first.in[k], RangeOfInput(parts.first, k), parts.in_steps[k])) return i;
      }
      for (size_t k = 0; k < parts.first.out.size(); ++k) {
        if (!stays(parts.first.out[k], RangeOfOutput(parts.first, k), parts.out_steps[k])) return i;
      }
    }
    return stretch->end;
  }

  // A filter was packed for convolutions of the whole batch. It can be packed for those of a part if no other one reads
  // it.
  bool FilterFits(const BatchParts& parts) const {
    const auto* desc = std::get_if<ConvolutionDesc>(&parts.first.desc);
    if (desc == nullptr || desc->packed_filter_bytes == 0) return true;
    const int filter = parts.first.in[2].buffer;
    const auto writer = writer_of_hoisted_.find(filter);
    return writer != writer_of_hoisted_.end() && uses_.buffers[filter].readers.size() == 1 &&
           std::holds_alternative<ConvolutionDesc>(hoisted_.commands[writer->second].desc);
  }

  // True if nothing but the stretch needs a buffer.
  bool IsInside(const Stretch& stretch, int buffer) const {
    const BufferUses::OfBuffer& of = uses_.buffers[buffer];
    const auto inside = [&](const std::vector<int>& commands) {
      return !commands.empty() && commands.front() >= stretch.begin && commands.back() < stretch.end;
    };
    return !of.kept && inside(of.writers) && inside(of.readers);
  }

  int64_t ValuesInside(const Stretch& stretch) const {
    std::vector<int> written;
    for (const BatchParts& parts : stretch.commands) {
      for (const BufferSlice& place : parts.first.out) written.push_back(place.buffer);
    }
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    int64_t bytes = 0;
    for (int buffer : written) bytes += IsInside(stretch, buffer) ? list_.buffers[buffer].bytes : 0;
    return bytes;
  }

  void Emit(const Stretch& stretch) {
    for (const BatchParts& parts : stretch.commands) {
      const auto* desc = std::get_if<ConvolutionDesc>(&parts.first.desc);
      if (desc == nullptr || desc->packed_filter_bytes == 0) continue;
      Command& packing = hoisted_.commands[writer_of_hoisted_.at(parts.first.in[2].buffer)];
      packing.desc = PackingOf(*desc);
    }
    for (int64_t part = 0; part < stretch.parts; ++part) {
      std::map<int, int> own;  // the part's buffer in place of one of the whole batch
      for (const BatchParts& parts : stretch.commands) {
        Command command = parts.first;
        const auto move = [&](std::vector<BufferSlice>* places, const std::vector<int64_t>& steps) {
          for (size_t k = 0; k < places->size(); ++k) {
            BufferSlice& place = (*places)[k];
            if (place.buffer == BufferSlice::kNowhere) continue;
            if (!IsInside(stretch, place.buffer)) {
              place.offset += part * steps[k];
              continue;
            }
            const auto [at, is_new] = own.emplace(place.buffer, static_cast<int>(list_.buffers.size()));
            if (is_new) {
              Buffer buffer = list_.buffers[place.buffer];
              buffer.bytes /= stretch.parts;
              list_.buffers.push_back(buffer);
            }
            place.buffer = at->second;
          }
        };
        move(&command.in, parts.in_steps);
        move(&command.out, parts.out_steps);
        tiled_.push_back(std::move(command));
      }
    }
  }

  const Capabilities& can_;
  const int64_t cache_;
  CommandList& list_;
  CommandList& hoisted_;
  const BufferUses uses_;
  std::map<int, int> writer_of_hoisted_;  // commands that run once, by the buffer that they write
  std::vector<int64_t> wanted_;           // parts, by command
  std::vector<Command> tiled_;
};

}  // namespace

void TileBatch(const Capabilities& can, CommandList* list, CommandList* hoisted) {
  if (can.CacheBytes() > 0) BatchTiler(can, list, hoisted).Run();
}

}  // namespace xpu::commands
