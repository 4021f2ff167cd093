// A value of the forward part that a gradient needs lives as long as all that is between the two. An elementwise chain
// need not: it is computed again, in the program that reads it, from what is there at that time.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/cost.h"
#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// Bytes up to which a buffer costs nobody anything.
constexpr int64_t kSmall = int64_t{64} << 10;
// The limits of a chain: its commands, and its simple instructions on an element for each byte that is saved.
constexpr size_t kMaxChain = 24;
constexpr int64_t kInstructionsPerByte = 4;

class Rematerializer {
 public:
  explicit Rematerializer(CommandList* list) : list_(*list), uses_(UsesOf(*list)), distances_(*list) {}

  void Run() {
    // Values that are computed from the same stand or fall together.
    std::map<std::pair<std::set<int>, int>, std::vector<Chain>> related;
    for (size_t b = 0; b < list_.buffers.size(); ++b) {
      Chain chain;
      if (!FindChain(static_cast<int>(b), &chain)) continue;
      const int first = chain.sources.empty() ? *chain.commands.begin() : -1;
      related[{chain.sources, first}].push_back(std::move(chain));
    }
    for (const auto& [key, chains] : related) {
      if (Pays(key.first, chains)) Insert(chains);
    }
    if (!inserted_.empty()) Emit();
  }

 private:
  // How the value of a buffer is computed again for those who read it far from where it was.
  struct Chain {
    int buffer = 0;
    int first_reader = 0;    // of those that are far
    std::set<int> commands;  // in order
    std::set<int> sources;   // large buffers that are not needed else at that time
  };

  bool IsLarge(int buffer) const { return list_.buffers[buffer].bytes > kSmall; }

  const ElementwiseDesc* ElementwiseOf(int command) const {
    const auto* desc = std::get_if<ElementwiseDesc>(&list_.commands[command].desc);
    return desc != nullptr && !desc->program->can_fail() && desc->program->num_outputs() == 1 ? desc : nullptr;
  }

  // The one command that writes a buffer, all of it and elementwise; -1 if it is not so.
  int WriterOf(int buffer) const {
    const BufferUses::OfBuffer& uses = uses_.buffers[buffer];
    if (uses.kept || uses.writers.size() != 1) return -1;
    const int writer = uses.writers[0];
    return ElementwiseOf(writer) != nullptr && WritesWhole(list_, list_.commands[writer], 0) ? writer : -1;
  }

  bool FindChain(int buffer, Chain* chain) const {
    const int writer = IsLarge(buffer) ? WriterOf(buffer) : -1;
    if (writer < 0) return false;
    const std::vector<int>& readers = uses_.buffers[buffer].readers;
    const auto far = std::find_if(readers.begin(), readers.end(), [&](int r) { return distances_.AreFar(writer, r); });
    if (far == readers.end()) return false;
    if (!std::all_of(far, readers.end(), [this](int r) { return ElementwiseOf(r) != nullptr; })) return false;
    chain->buffer = buffer;
    chain->first_reader = *far;
    return Follow(writer, chain);
  }

  // Adds a command to the chain, and what it reads that nobody else will have kept.
  bool Follow(int command, Chain* chain) const {
    if (!chain->commands.insert(command).second) return true;
    if (chain->commands.size() > kMaxChain) return false;
    for (const BufferSlice& place : list_.commands[command].in) {
      if (place.buffer == BufferSlice::kNowhere) continue;
      const BufferUses::OfBuffer& uses = uses_.buffers[place.buffer];
      const auto in_between = [&](int w) { return w > command && w < chain->first_reader; };
      if (std::any_of(uses.writers.begin(), uses.writers.end(), in_between)) return false;
      if (uses.kept || !IsLarge(place.buffer) || IsKeptAnyway(place.buffer, chain->first_reader)) continue;
      const int writer = WriterOf(place.buffer);
      if (writer < 0) {
        chain->sources.insert(place.buffer);
      } else if (!Follow(writer, chain)) {
        return false;
      }
    }
    return true;
  }

  // True if something that is not elementwise reads a buffer then or later.
  bool IsKeptAnyway(int buffer, int command) const {
    const std::vector<int>& readers = uses_.buffers[buffer].readers;
    return std::any_of(readers.begin(), readers.end(),
                       [&](int r) { return r >= command && ElementwiseOf(r) == nullptr; });
  }

  bool Pays(const std::set<int>& sources, const std::vector<Chain>& chains) const {
    int64_t saved = 0, cost = 0;
    std::set<int> commands;
    for (const Chain& chain : chains) {
      saved += list_.buffers[chain.buffer].bytes;
      commands.insert(chain.commands.begin(), chain.commands.end());
    }
    for (int source : sources) saved -= list_.buffers[source].bytes;
    for (int command : commands) {
      const ElementwiseDesc& desc = *ElementwiseOf(command);
      cost += CostOf(*desc.program) * desc.shape.num_elements();
    }
    return saved > 0 && cost <= kInstructionsPerByte * saved;
  }

  // The chains' commands once more, before the first who reads one of their values.
  void Insert(const std::vector<Chain>& chains) {
    std::set<int> commands;
    int before = chains[0].first_reader;
    for (const Chain& chain : chains) {
      commands.insert(chain.commands.begin(), chain.commands.end());
      before = std::min(before, chain.first_reader);
    }
    std::map<int, int> again;  // buffers
    for (int c : commands) {
      Command command = list_.commands[c];
      for (BufferSlice& place : command.in) {
        const auto found = again.find(place.buffer);
        if (found != again.end()) place.buffer = found->second;
      }
      const int number = static_cast<int>(list_.buffers.size());
      list_.buffers.push_back({Buffer::Kind::kComputed, list_.buffers[command.out[0].buffer].bytes, nullptr});
      again[command.out[0].buffer] = number;
      command.out[0].buffer = number;
      inserted_[before].push_back(std::move(command));
    }
    for (const Chain& chain : chains) {
      for (int reader : uses_.buffers[chain.buffer].readers) {
        if (reader < chain.first_reader) continue;
        for (BufferSlice& place : list_.commands[reader].in) {
          if (place.buffer == chain.buffer) place.buffer = again.at(chain.buffer);
        }
      }
    }
  }

  void Emit() {
    std::vector<std::pair<size_t, Command>> inserted;
    for (auto& [before, commands] : inserted_) {
      for (Command& command : commands) inserted.emplace_back(before, std::move(command));
    }
    InsertBefore(std::move(inserted), &list_);
  }

  CommandList& list_;
  const BufferUses uses_;
  const Distances distances_;
  std::map<int, std::vector<Command>> inserted_;  // by the command that they come before
};

}  // namespace

void Rematerialize(CommandList* list) { Rematerializer(list).Run(); }

}  // namespace xpu::commands
