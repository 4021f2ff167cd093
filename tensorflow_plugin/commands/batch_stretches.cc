#include "tensorflow_plugin/commands/batch_stretches.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// The bytes that the parts of a stretch touch, as commands are added.
class TouchedParts {
 public:
  TouchedParts(const CommandList& list, int64_t parts) : list_(list), parts_(parts) {}

  // False if one part writes what another part touches. Nothing can be added then.
  bool Add(const BatchParts& command) {
    for (const BufferSlice& place : command.first.out) {
      // A fixed buffer may be a part of another one.
      if (place.buffer == BufferSlice::kNowhere || list_.buffers[place.buffer].kind == Buffer::Kind::kFixed)
        return false;
      buffers_[place.buffer].written = true;
    }
    for (size_t k = 0; k < command.first.in.size(); ++k) {
      Touch(command.first.in[k], RangeOfInput(command.first, k), command.in_steps[k]);
    }
    for (size_t k = 0; k < command.first.out.size(); ++k) {
      Touch(command.first.out[k], RangeOfOutput(command.first, k), command.out_steps[k]);
    }
    const auto keeps_apart = [this](const BufferSlice& place) {
      const auto of = buffers_.find(place.buffer);  // not there: an operand without elements
      return of == buffers_.end() || !of->second.written || of->second.apart;
    };
    return std::all_of(command.first.in.begin(), command.first.in.end(), keeps_apart) &&
           std::all_of(command.first.out.begin(), command.first.out.end(), keeps_apart);
  }

  // The buffers that are written of which part i touches the i-th of as many equal parts.
  std::set<int> DividedEvenly() const {
    std::set<int> even;
    for (const auto& [buffer, of] : buffers_) {
      const int64_t bytes = list_.buffers[buffer].bytes;
      if (of.written && of.apart && !of.first.empty() && of.step * parts_ == bytes && of.first.begin()->first >= 0 &&
          of.first.rbegin()->second <= of.step) {
        even.insert(buffer);
      }
    }
    return even;
  }

 private:
  struct OfBuffer {
    bool written = false;
    bool apart = true;                 // no part touches what another one touches
    int64_t step = 0;                  // from one part to the next
    std::map<int64_t, int64_t> first;  // what the first part touches: ends of ranges by their begins, none adjacent
  };

  void Touch(const BufferSlice& place, const ByteRange& range, int64_t step) {
    if (place.buffer == BufferSlice::kNowhere || range.begin >= range.end) return;
    OfBuffer& of = buffers_[place.buffer];
    if (!of.apart) return;
    of.apart = range.end - range.begin <= step && (of.first.empty() || of.step == step);
    of.step = step;
    for (int64_t part = 1; part < parts_ && of.apart; ++part) {
      of.apart = !Overlaps(of, range, part * step) && !Overlaps(of, range, -part * step);
    }
    if (of.apart) Insert(range, &of.first);
  }
  static bool Overlaps(const OfBuffer& of, const ByteRange& range, int64_t by) {
    const auto after = of.first.lower_bound(range.end + by);
    return after != of.first.begin() && std::prev(after)->second > range.begin + by;
  }
  static void Insert(ByteRange range, std::map<int64_t, int64_t>* ranges) {
    auto at = ranges->upper_bound(range.end);
    while (at != ranges->begin() && std::prev(at)->second >= range.begin) {
      --at;
      range = {std::min(range.begin, at->first), std::max(range.end, at->second)};
      at = ranges->erase(at);
    }
    ranges->emplace(range.begin, range.end);
  }

  const CommandList& list_;
  const int64_t parts_;
  std::map<int, OfBuffer> buffers_;
};

}  // namespace

BatchStretches::BatchStretches(const Capabilities& can, const CommandList& list, CommandList* hoisted)
    : can_(can), list_(list), hoisted_(*hoisted), uses_(UsesOf(list)) {
  for (size_t i = 0; i < hoisted_.commands.size(); ++i) {
    for (const BufferSlice& place : hoisted_.commands[i].out) writer_of_hoisted_[place.buffer] = static_cast<int>(i);
  }
}

BatchStretch BatchStretches::Longest(int begin, int end, int64_t parts) const {
  BatchStretch stretch{begin, parts, {}, {}};
  TouchedParts touched(list_, parts);
  for (int i = begin; i < end; ++i) {
    std::optional<BatchParts> command = SplitBatch(can_, list_.commands[i], parts);
    if (!command || !FilterFits(*command) || !touched.Add(*command)) break;
    stretch.commands.push_back(*std::move(command));
  }
  // With those of the command that did not fit. They do no harm: what it touches is not inside the stretch.
  stretch.even = touched.DividedEvenly();
  return stretch;
}

int64_t BatchStretches::BytesOfBatch(const Command& command) const {
  const std::optional<BatchParts> halves = SplitBatch(can_, command, 2);
  if (!halves) return -1;
  int64_t bytes = 0;
  const auto add = [&bytes](const std::vector<int64_t>& steps, const Operand* operands) {
    for (size_t k = 0; k < steps.size(); ++k) bytes += steps[k] != 0 ? operands[k].end - operands[k].begin : 0;
  };
  add(halves->in_steps, command.footprint.in);
  add(halves->out_steps, command.footprint.out);
  return bytes;
}

// A filter was packed for convolutions of the whole batch. It can be packed for those of a part if no other one reads
// it.
bool BatchStretches::FilterFits(const BatchParts& parts) const {
  const auto* desc = std::get_if<ConvolutionDesc>(&parts.first.desc);
  if (desc == nullptr || desc->packed_filter_bytes == 0) return true;
  const int filter = parts.first.in[PackedFilterInput(*desc)].buffer;
  const auto writer = writer_of_hoisted_.find(filter);
  return writer != writer_of_hoisted_.end() && uses_.buffers[filter].readers.size() == 1 &&
         std::holds_alternative<ConvolutionDesc>(hoisted_.commands[writer->second].desc);
}

bool BatchStretches::IsInside(const BatchStretch& stretch, int buffer) const {
  if (stretch.even.count(buffer) == 0) return false;
  const BufferUses::OfBuffer& of = uses_.buffers[buffer];
  const auto inside = [&](const std::vector<int>& commands) {
    return !commands.empty() && commands.front() >= stretch.begin && commands.back() < stretch.end();
  };
  return !of.kept && inside(of.writers) && inside(of.readers);
}

int64_t BatchStretches::BytesInside(const BatchStretch& stretch) const {
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

void BatchStretches::Emit(const BatchStretch& stretch, bool as_strands, std::vector<Buffer>* buffers,
                          std::vector<Command>* to) {
  for (const BatchParts& parts : stretch.commands) {
    const auto* desc = std::get_if<ConvolutionDesc>(&parts.first.desc);
    if (desc == nullptr || desc->packed_filter_bytes == 0) continue;
    Command& packing = hoisted_.commands[writer_of_hoisted_.at(parts.first.in[PackedFilterInput(*desc)].buffer)];
    packing.desc = PackingOf(*desc);
  }
  for (int64_t part = 0; part < stretch.parts; ++part) {
    std::map<int, int> own;  // the part's buffer in place of one of the whole batch
    for (const BatchParts& parts : stretch.commands) {
      Command command = parts.first;
      if (as_strands) command.strand = static_cast<int>(part);
      const auto move = [&](std::vector<BufferSlice>* places, const std::vector<int64_t>& steps) {
        for (size_t k = 0; k < places->size(); ++k) {
          BufferSlice& place = (*places)[k];
          if (place.buffer == BufferSlice::kNowhere) continue;
          if (!IsInside(stretch, place.buffer)) {
            place.offset += part * steps[k];
            continue;
          }
          const auto [at, is_new] = own.emplace(place.buffer, static_cast<int>(buffers->size()));
          if (is_new) {
            Buffer buffer = (*buffers)[place.buffer];
            buffer.bytes /= stretch.parts;
            buffers->push_back(buffer);
          }
          place.buffer = at->second;
        }
      };
      move(&command.in, parts.in_steps);
      move(&command.out, parts.out_steps);
      to->push_back(std::move(command));
    }
  }
}

}  // namespace xpu::commands
