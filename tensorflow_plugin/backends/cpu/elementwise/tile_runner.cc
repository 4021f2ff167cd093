#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace xpu::cpu {
namespace {

// The blocks of this thread that no runner has.
std::vector<TileBlock::Memory>& FreeBlocks() {
  thread_local std::vector<TileBlock::Memory> free;
  return free;
}

struct Bytes16 {
  uint64_t a, b;
};

// Calls f(T{}) with a type of `size` bytes.
template <typename F>
void WithSize(size_t size, F f) {
  switch (size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Bytes16{});
  }
}

}  // namespace

TileBlock::TileBlock(int64_t bytes) {
  if (bytes == 0) return;
  auto& free = FreeBlocks();
  if (!free.empty()) {
    memory_ = std::move(free.back());
    free.pop_back();
  }
  if (memory_.bytes < bytes) {
    memory_.data.reset(new char[bytes + kTileAlignment]);
    memory_.bytes = bytes;
  }
  begin_ = AlignedTile(memory_.data.get());
}

TileBlock::~TileBlock() {
  if (memory_.data != nullptr) FreeBlocks().push_back(std::move(memory_));
}

ElementwiseDesc Merged(const ElementwiseDesc& desc) {
  // Strides that no input has are not copied: that takes as long as a small program.
  ElementwiseDesc merged;
  merged.program = desc.program;
  merged.shape = desc.shape;
  Dims* strides[Program::kMaxInputs];
  const int n = desc.program->num_inputs();
  for (int i = 0; i < n; ++i) {
    merged.in_strides[i] = desc.in_strides[i];
    strides[i] = &merged.in_strides[i];
  }
  MergeDims(&merged.shape, strides, n);
  return merged;
}

TileRunner::TileRunner(const ElementwiseDesc& desc, const Args& args, bool store_outputs)
    : desc_(desc),
      args_(args),
      prepared_(Prepare(desc.program)),
      plan_(prepared_.PlanFor(LayoutOf(desc, args, store_outputs), &own_plan_)),
      block_(plan_.block_bytes) {
  const Program& p = *desc.program;
  std::fill_n(tile_, p.num_inputs(), nullptr);
  for (int i = 0; i < p.num_inputs(); ++i) {
    from_[i] = static_cast<const char*>(args.in[i]);
    if (plan_.layout.walk[i] == Walk::kScalar) ReadElement(i, args.in[i]);
  }
  for (size_t c = 0; c < p.constants().size(); ++c) {
    reg_[p.num_inputs() + c] = AlignedTile(prepared_.constants[c].get());
  }
  if (plan_.layout.by_rows != 0) ListRowInputs();
  RunOnce(plan_.once);
  for (const TilePlace& place : plan_.tiles) tile_[place.reg] = block_.at(place.offset);
  // Tiles that are filled for good, no further than there are elements to combine them with.
  for (const TilePlace& place : plan_.repeated) {
    void* const tile = block_.at(place.offset);
    RepeatRegister(element_[place.reg], place.register_size, std::min(kTile, desc.shape.num_elements()), tile);
    reg_[place.reg] = tile;
  }
}

void TileRunner::ListRowInputs() {
  const int last = desc_.shape.rank() - 1;
  for (int i = 0; i < prepared_.program->num_inputs(); ++i) {
    const Walk walk = plan_.layout.walk[i];
    if (walk != Walk::kInRow && walk != Walk::kOfRow) continue;
    const auto size = static_cast<int64_t>(SizeOf(prepared_.program->inputs()[i]));
    const bool is_one = walk == Walk::kOfRow;
    row_inputs_.push_back({i, is_one, size, (desc_.in_strides[i][last - 1] - (is_one ? 0 : desc_.shape[last])) * size});
  }
}

bool TileRunner::IsInput(int i) const {
  const int r = prepared_.program->outputs()[i];
  return plan_.whole_range && r < prepared_.program->num_inputs() && prepared_.loads[r] == nullptr &&
         plan_.layout.walk[r] == Walk::kContiguous && tile_[r] == nullptr;
}

void TileRunner::ReadElement(int input, const void* at) {
  const InstrFn load = prepared_.loads[input];
  if (load != nullptr) {
    load(element_[input], at, nullptr, nullptr, 1);
  } else {
    std::memcpy(element_[input], at, SizeOf(prepared_.program->inputs()[input]));
  }
  reg_[input] = element_[input];
}

void TileRunner::RunOnce(const std::vector<TileStep>& steps) {
  for (const TileStep& step : steps) {
    const bool failed = step.run(element_[step.result], reg_[step.a], reg_[step.b], reg_[step.c], 1);
    if (failed && status_.ok()) status_ = plain::InstrFailure(step.op);
    reg_[step.result] = element_[step.result];
  }
}

void TileRunner::Run(int64_t begin, int64_t n) {
  plan_.layout.by_rows != 0 ? RunByRows(begin, n) : RunInTiles(begin, n);
}

void TileRunner::RunByRows(int64_t begin, int64_t n) {
  const int last = desc_.shape.rank() - 1;
  const int64_t columns = desc_.shape[last], end = begin + n;
  int64_t row = begin / columns, column = begin % columns, left = 0;  // rows along the axis before the last one
  for (; begin < end; ++row, column = 0) {
    if (left == 0) {
      left = desc_.shape[last - 1] - row % desc_.shape[last - 1];
      FindRow(row);
    } else {
      for (const RowInput& input : row_inputs_) from_[input.input] += input.step;
    }
    --left;
    BeginRow();
    const int64_t here = std::min(end - begin, columns - column);
    RunInTiles(begin, here);
    begin += here;
  }
}

void TileRunner::FindRow(int64_t row) {
  const Dims& shape = desc_.shape;
  const int last = shape.rank() - 1;
  for (const RowInput& input : row_inputs_) {
    const Dims& strides = desc_.in_strides[input.input];
    int64_t element = 0, rest = row;
    for (int d = last - 1; d > 0; --d) {
      element += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    element += rest * strides[0];
    if (!input.is_one) element -= row * shape[last];
    from_[input.input] = static_cast<const char*>(args_.in[input.input]) + element * input.size;
  }
}

// Values of which there is one for the row.
void TileRunner::BeginRow() {
  for (const RowInput& input : row_inputs_) {
    if (!input.is_one) continue;
    if (prepared_.loads[input.input] != nullptr) {
      ReadElement(input.input, from_[input.input]);
    } else {
      reg_[input.input] = from_[input.input];
    }
  }
  RunOnce(plan_.of_row);
  for (const TilePlace& place : plan_.repeated_of_row) {
    void* const tile = block_.at(place.offset);
    RepeatRegister(reg_[place.reg], place.register_size, std::min(kTile, desc_.shape[desc_.shape.rank() - 1]), tile);
    reg_[place.reg] = tile;
  }
}

void TileRunner::RunInTiles(int64_t begin, int64_t n) {
  if (plan_.whole_range) {
    RunTile(begin, n);
    return;
  }
  for (int64_t done = 0; done < n; done += plan_.at_once) RunTile(begin + done, std::min(plan_.at_once, n - done));
}

void TileRunner::RunTile(int64_t begin, int64_t n) {
  const Program& p = *prepared_.program;
  for (int i = 0; i < p.num_inputs(); ++i) {
    const size_t size = SizeOf(p.inputs()[i]);
    const InstrFn load = prepared_.loads[i];
    const Walk walk = plan_.layout.walk[i];
    if (walk == Walk::kContiguous || walk == Walk::kInRow) {
      const char* source = from_[i] + begin * size;
      if (load != nullptr) {
        load(tile_[i], source, nullptr, nullptr, n);
        reg_[i] = tile_[i];
      } else if (tile_[i] != nullptr) {
        std::memcpy(tile_[i], source, n * size);
        reg_[i] = tile_[i];
      } else {
        reg_[i] = source;
      }
    } else if (walk == Walk::kStrided) {
      if (load != nullptr) {
        void* const raw = block_.at(plan_.raw);
        Gather(i, begin, n, raw);
        load(tile_[i], raw, nullptr, nullptr, n);
      } else {
        Gather(i, begin, n, tile_[i]);
      }
      reg_[i] = tile_[i];
    }
  }
  for (const TileStep& step : plan_.steps) {
    void* to = tile_[step.result];
    if (step.output >= 0) to = static_cast<char*>(args_.out[step.output]) + begin * step.output_size;
    const bool failed = step.run(to, reg_[step.a], reg_[step.b], reg_[step.c], n);
    reg_[step.result] = to;
    if (__builtin_expect(failed, 0) && status_.ok()) status_ = plain::InstrFailure(step.op);
  }
  if (plan_.layout.stores_outputs == 0) return;
  for (int o : plan_.stored) {
    const int r = p.outputs()[o];
    const DType type = p.output_type(o);
    char* dst = static_cast<char*>(args_.out[o]) + begin * SizeOf(type);
    if (prepared_.stores[o] != nullptr) {
      prepared_.stores[o](dst, reg_[r], nullptr, nullptr, n);
    } else if (dst != reg_[r]) {
      std::memmove(dst, reg_[r], n * SizeOf(type));
    }
  }
}

namespace {

template <typename T>
void Fill(T value, int64_t n, T* dst) {
  int64_t k = 0;
  if constexpr (std::is_integral_v<T>) {
    // The compiler's own loop takes elements by 16 bytes.
    typedef T Block __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
    constexpr int64_t kLanes = 64 / sizeof(T);
    const Block block = Block{} + value;
    for (; k + kLanes <= n; k += kLanes) *reinterpret_cast<Block*>(dst + k) = block;
  }
  for (; k < n; ++k) dst[k] = value;
}

// Copies elements [begin, begin + n) of the row-major walk of a strided view to dst.
template <typename T>
void GatherAs(const Dims& shape, const Dims& strides, const T* source, int64_t begin, int64_t n, T* dst) {
  const int rank = shape.rank();
  Dims index(rank, 0);
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    index[d] = begin % shape[d];
    begin /= shape[d];
    offset += index[d] * strides[d];
  }
  const int inner = rank - 1;
  const int64_t stride = strides[inner];
  const bool repeats = stride == 1 && rank > 1 && strides[inner - 1] == 0;
  while (n > 0) {
    int64_t run = std::min(n, shape[inner] - index[inner]), rows = 1;
    if (repeats && run == shape[inner]) rows = std::min(n / run, shape[inner - 1] - index[inner - 1]);
    const T* s = source + offset;
    if (stride == 1) {
      if (run < 16) {
        for (int64_t k = 0; k < run; ++k) dst[k] = s[k];
      } else {
        std::memcpy(dst, s, run * sizeof(T));
      }
      // The same row again: as many as there are already, at a time.
      for (int64_t done = run; done < run * rows;) {
        const int64_t more = std::min(done, run * rows - done);
        std::memcpy(dst + done, dst, more * sizeof(T));
        done += more;
      }
    } else if (stride == 0) {
      Fill(*s, run, dst);
    } else {
      for (int64_t k = 0; k < run; ++k) dst[k] = s[k * stride];
    }
    dst += run * rows;
    n -= run * rows;
    // To the start of the next row.
    offset -= index[inner] * stride;
    index[inner] = 0;
    if (rows > 1) index[inner - 1] += rows - 1;
    for (int d = inner - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= shape[d] * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void TileRunner::Gather(int input, int64_t begin, int64_t n, void* dst) const {
  const Dims& strides = desc_.in_strides[input];
  const void* source = args_.in[input];
  WithSize(SizeOf(prepared_.program->inputs()[input]), [&](auto element) {
    using T = decltype(element);
    GatherAs<T>(desc_.shape, strides, static_cast<const T*>(source), begin, n, static_cast<T*>(dst));
  });
}

}  // namespace xpu::cpu
