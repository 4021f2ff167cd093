// Finds matrices of floats that weights of 4 bits stand for, and has products read the weights instead.
//
// A model computes such a matrix with some ten commands. They take bytes apart, put their halves in order, and subtract
// a zero point and multiply by a scale for each group. No command says that. So this pass looks only at the buffers
// that the matrix is computed of, and at their sizes. FindWeights, which runs once, compares the matrix with the
// weights bit by bit. It fails if they differ, and then the product has to read the matrix.
#include <algorithm>
#include <optional>
#include <utility>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

// Groups of fewer rows would have almost as many scales as weights.
constexpr int64_t kFewestRows = 8;

// How many bytes of each buffer that stays the elements of a matrix are computed of. Indices do not count.
std::vector<int64_t> SourceBytesOf(const CommandList& list, const BufferUses& uses, const std::vector<bool>& invariant,
                                   int matrix) {
  std::vector<int64_t> bytes(invariant.size(), 0);
  std::vector<bool> seen(list.buffers.size(), false);
  std::vector<int> open = {matrix};
  seen[matrix] = true;
  while (!open.empty()) {
    const int buffer = open.back();
    open.pop_back();
    for (int w : uses.buffers[buffer].writers) {
      const Command& command = list.commands[w];
      for (size_t k = 0; k < command.in.size(); ++k) {
        const int b = command.in[k].buffer;
        if (b == BufferSlice::kNowhere || IndicesOf(command).input == static_cast<int>(k) ||
            static_cast<int>(k) >= command.footprint.num_in) {
          continue;
        }
        const Operand& operand = command.footprint.in[k];
        if (invariant[b]) {
          // A part of a buffer is not taken for weights.
          bytes[b] = std::max(bytes[b], command.in[k].offset == 0 ? operand.end : INT64_MAX);
        } else if (!seen[b]) {
          seen[b] = true;
          open.push_back(b);
        }
      }
    }
  }
  return bytes;
}

struct Weights {
  int packed, scales, zero_points;  // buffers
  int64_t groups, bytes;
};

// The sources that may be the weights of a matrix [k,n], by their sizes; none if that is not clear.
std::optional<Weights> WeightsAmong(const std::vector<int64_t>& bytes, int64_t k, int64_t n) {
  std::optional<Weights> found;
  const int count = static_cast<int>(bytes.size());
  for (int packed = 0; packed < count; ++packed) {
    if (bytes[packed] == 0 || (bytes[packed] != k * ((n + 1) / 2) && bytes[packed] != (k + 1) / 2 * n)) continue;
    for (int zero_points = 0; zero_points < count; ++zero_points) {
      const int64_t groups = bytes[zero_points] / n;
      if (zero_points == packed || groups == 0 || bytes[zero_points] % n != 0 ||
          groups > std::max<int64_t>(1, k / kFewestRows)) {
        continue;
      }
      for (int scales = 0; scales < count; ++scales) {
        if (bytes[scales] / static_cast<int64_t>(sizeof(float)) != bytes[zero_points] ||
            bytes[scales] % static_cast<int64_t>(sizeof(float)) != 0 || scales == packed) {
          continue;
        }
        if (found) return std::nullopt;
        found = Weights{packed, scales, zero_points, groups, bytes[packed]};
      }
    }
  }
  return found;
}

// A product whose second matrix is dense and the same for all of a batch, as one of weights; none if it is another one.
std::optional<WeightMatMulDesc> OfWeights(const MatMulDesc& d) {
  if (d.type != DType::kFloat || IsMixed(d) || HasEpilogue(d) || !d.c_batch_strides.empty() || d.k < 2 || d.n < 2 ||
      (d.ldc != 0 && d.ldc != d.n) || (d.ldb != 0 && d.ldb != (d.transpose_b ? d.k : d.n)) ||
      (d.transpose_a && (d.m != 1 || d.lda > 1))) {
    return std::nullopt;
  }
  WeightMatMulDesc desc;
  desc.n = d.n;
  desc.k = d.k;
  desc.m = d.m * d.batch.num_elements();
  desc.lda = d.transpose_a || d.lda == d.k ? 0 : d.lda;
  const Dims dense = DenseStrides(d.batch);
  for (int i = 0; i < d.batch.rank(); ++i) {
    if (d.b_batch_strides[i] != 0 && d.batch[i] != 1) return std::nullopt;
    const int64_t rows = dense[i] * d.m;  // from one of the batch to the next
    if (d.batch[i] != 1 && d.a_batch_strides[i] != rows * (desc.lda != 0 ? desc.lda : d.k)) return std::nullopt;
  }
  return desc;
}

// The command that finds the form of the weights that a product reads from then on; none if there is no such command.
std::optional<Command> ReadWeights(const Capabilities& can, const Weights& weights, WeightMatMulDesc desc,
                                   CommandList* list, Command* product) {
  desc.groups = weights.groups;
  desc.bytes = weights.bytes;
  FindWeightsDesc find;
  find.k = desc.k;
  find.n = desc.n;
  find.groups = weights.groups;
  find.bytes = weights.bytes;
  find.transposed = std::get<MatMulDesc>(product->desc).transpose_b;
  Command finder;
  Footprint footprint;
  if (!can.Supports(find) || !can.Supports(desc) || !Check(find, &finder.footprint).ok() ||
      !Check(desc, &footprint).ok()) {
    return std::nullopt;
  }
  const BufferSlice form{static_cast<int>(list->buffers.size()), 0};
  list->buffers.push_back({Buffer::Kind::kComputed, footprint.in[4].end, nullptr});
  finder.desc = find;
  finder.in = {product->in[1], {weights.packed, 0}, {weights.scales, 0}, {weights.zero_points, 0}};
  finder.out = {form};
  finder.origin = product->origin;
  MakeCondition(&finder);
  product->desc = desc;
  product->in = {product->in[0], finder.in[1], finder.in[2], finder.in[3], form};
  product->footprint = footprint;
  return finder;
}

}  // namespace

void ReadPackedWeights(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  const std::vector<bool> hoisted = InvariantCommands(*list, invariant);
  const auto is_hoisted = [&](const BufferSlice& place) {
    if (place.buffer == BufferSlice::kNowhere || place.offset != 0 || invariant[place.buffer]) return false;
    const std::vector<int>& writers = uses.buffers[place.buffer].writers;
    return !writers.empty() && std::all_of(writers.begin(), writers.end(), [&](int w) { return hoisted[w]; });
  };
  std::vector<std::pair<size_t, Command>> finders;
  for (size_t i = 0; i < list->commands.size(); ++i) {
    Command& command = list->commands[i];
    const auto* desc = std::get_if<MatMulDesc>(&command.desc);
    if (desc == nullptr || !is_hoisted(command.in[1])) continue;
    const std::optional<WeightMatMulDesc> changed = OfWeights(*desc);
    if (!changed) continue;
    const std::optional<Weights> weights =
        WeightsAmong(SourceBytesOf(*list, uses, invariant, command.in[1].buffer), changed->k, changed->n);
    if (!weights) continue;
    if (std::optional<Command> finder = ReadWeights(can, *weights, *changed, list, &command)) {
      finders.emplace_back(i, *std::move(finder));
    }
  }
  InsertBefore(std::move(finders), list);
}

}  // namespace xpu::commands
