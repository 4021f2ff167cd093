#include "tensorflow_plugin/backends/cuda/host_checks.h"

#include <algorithm>
#include <string>
#include <variant>

#include "tensorflow_plugin/backends/host_runtime/indices.h"

namespace xpu::cuda {
namespace {

// More numbers take the host longer than a wait for the GPU.
constexpr int64_t kMostIndices = int64_t{1} << 18;

}  // namespace

bool IsCheck(const Command& command) {
  return command.may_fail() && std::all_of(command.out.begin(), command.out.end(), [](const BufferSlice& place) {
           return place.buffer == BufferSlice::kNowhere;
         });
}

HostChecks::HostChecks(const CommandList& list)
    : list_(list), writers_(list.buffers.size()), is_safe_(list.commands.size(), false) {
  for (size_t i = 0; i < list.commands.size(); ++i) {
    for (const BufferSlice& place : list.commands[i].out) {
      if (place.buffer != BufferSlice::kNowhere) writers_[static_cast<size_t>(place.buffer)].push_back(i);
    }
  }
  for (size_t i = 0; i < list.commands.size(); ++i) {
    if (!list.commands[i].may_fail()) continue;
    Indices found;
    if (!FindIndices(i, &found)) continue;
    indices_.push_back(found);
    is_safe_[i] = true;
  }
}

bool HostChecks::FindIndices(size_t i, Indices* found) const {
  const Command& command = list_.commands[i];
  if (!SucceedsWithinRange(command)) return false;
  found->command = i;
  found->skip_negative = false;
  if (const auto* scatter = std::get_if<ScatterDesc>(&command.desc)) {
    found->batches = 1;
    found->in_each = scatter->num_indices;
    found->skip_negative = scatter->skip_negative;
  } else {
    const auto& gather = std::get<GatherDesc>(command.desc);
    found->batches = gather.batch;
    found->in_each = gather.num_indices;
  }
  const IndexOperand operand = IndicesOf(command);
  const BufferSlice& place = command.in[static_cast<size_t>(operand.input)];
  const std::vector<size_t>& writers = writers_[static_cast<size_t>(place.buffer)];
  if (writers.size() != 1 || writers[0] > i) return false;
  const Command& copy = list_.commands[writers[0]];
  const auto* from_host = std::get_if<CopyFromHost>(&copy.desc);
  if (from_host == nullptr) return false;
  const int64_t begin = place.offset - copy.out[0].offset, count = found->batches * found->in_each;
  const int64_t bytes = count * std::max(1, DimsOfIndices(command).rank()) * static_cast<int64_t>(SizeOf(operand.type));
  if (begin < 0 || begin + bytes > static_cast<int64_t>(from_host->bytes) || count > kMostIndices) return false;
  found->type = operand.type;
  found->place = {copy.in[0].buffer, copy.in[0].offset + begin};
  return true;
}

int HostChecks::FindFailure(char* const* addresses, Status* failure) const {
  for (const Indices& indices : indices_) {
    const Command& command = list_.commands[indices.command];
    const Dims& dims = DimsOfIndices(command);
    const int depth = dims.rank();
    const char* const bytes = indices.place.In(addresses);
    const int64_t count = indices.batches * indices.in_each;
    *failure = host_runtime::VisitIndexType(indices.type, [&](auto tag) -> Status {
      using I = typename decltype(tag)::type;
      const auto* index = reinterpret_cast<const I*>(bytes);
      for (int64_t j = 0; j < count; ++j, index += depth) {
        if (host_runtime::RowOf(index, dims) >= 0) continue;
        if (indices.skip_negative && std::any_of(index, index + depth, [](I i) { return i < I{0}; })) continue;
        return host_runtime::IndexError(host_runtime::PositionOf(j, indices.batches, indices.in_each), index, dims);
      }
      return OkStatus();
    });
    if (!failure->ok()) return static_cast<int>(indices.command);
  }
  return -1;
}

}  // namespace xpu::cuda
