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
  std::fill_n(row_step_, p.num_registers(), 0);
  for (int i = 0; i < p.num_inputs(); ++i) {
    from_step_[i] = 0;
    from_[i] = static_cast<const char*>(args.in[i]);
    if (plan_.layout.walk[i] == Walk::kScalar) ReadElement(i, args.in[i]);
  }
  for (size_t c = 0; c < p.constants().size(); ++c) {
    reg_[p.num_inputs() + c] = AlignedTile(prepared_.constants[c].get());
  }
  if (plan_.layout.by_rows != 0) ListRowInputs();
  RunOnce();
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
    row_inputs_.push_back({i, is_one, size});
    from_step_[i] = (desc_.in_strides[i][last - 1] - (is_one ? 0 : desc_.shape[last])) * size;
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

inline void TileRunner::Note(bool failed, Opcode op) {
  if (__builtin_expect(failed, 0) && status_.ok()) status_ = plain::InstrFailure(op);
}

void TileRunner::RunOnce() {
  for (const TileStep& step : plan_.once) {
    Note(step.run(element_[step.result], reg_[step.a], reg_[step.b], reg_[step.c], 1), step.op);
    reg_[step.result] = element_[step.result];
  }
}

void TileRunner::Run(int64_t begin, int64_t n) {
  plan_.layout.by_rows != 0 ? RunByRows(begin, n) : RunInTiles(begin, n);
}

// Some whole rows at a time, as many as a tile holds, or a part of one.
void TileRunner::RunByRows(int64_t begin, int64_t n) {
  const int last = desc_.shape.rank() - 1;
  const int64_t columns = desc_.shape[last], end = begin + n, most = std::max<int64_t>(1, plan_.at_once / columns);
  int64_t row = begin / columns, left = 0;  // rows along the axis before the last one
  while (begin < end) {
    if (left == 0) {
      left = desc_.shape[last - 1] - row % desc_.shape[last - 1];
      FindRow(row);
    }
    const int64_t here = std::min(end - begin, columns - begin % columns);
    const int64_t rows = here < columns ? 1 : std::min({left, most, (end - begin) / columns});
    BeginRows(rows);
    rows > 1 ? RunTile(begin, rows, here) : RunInTiles(begin, here);
    begin += rows * here;
    row += rows;
    left -= rows;
    for (const RowInput& input : row_inputs_) from_[input.input] += rows * from_step_[input.input];
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

// Values of which there is one for a row.
void TileRunner::BeginRows(int64_t rows) {
  const auto at = [this](uint16_t reg, int64_t row) {
    return static_cast<const char*>(reg_[reg]) + row * row_step_[reg];
  };
  for (const RowInput& input : row_inputs_) {
    if (!input.is_one) continue;
    const int i = input.input;
    const InstrFn load = prepared_.loads[i];
    reg_[i] = from_[i];
    row_step_[i] = from_step_[i];
    if (load == nullptr) continue;
    const auto size = static_cast<int64_t>(plain::RegisterSize(prepared_.program->inputs()[i]));
    for (int64_t r = 0; r < rows; ++r) {
      load(static_cast<char*>(tile_[i]) + r * size, from_[i] + r * from_step_[i], nullptr, nullptr, 1);
    }
    reg_[i] = tile_[i];
    row_step_[i] = size;
  }
  for (const TileStep& step : plan_.of_row) {
    auto* const to = static_cast<char*>(tile_[step.result]);
    const int64_t size = step.result_size;
    for (int64_t r = 0; r < rows; ++r) {
      Note(step.run(to + r * size, at(step.a, r), at(step.b, r), at(step.c, r), 1), step.op);
    }
    reg_[step.result] = to;
    row_step_[step.result] = size;
  }
  const int64_t columns = std::min(kTile, desc_.shape[desc_.shape.rank() - 1]);
  for (const TilePlace& place : plan_.repeated_of_row) {
    char* const tile = block_.at(place.offset);
    const int64_t row_bytes = columns * place.register_size;
    for (int64_t r = 0; r < rows; ++r) {
      RepeatRegister(at(place.reg, r), place.register_size, columns, tile + r * row_bytes);
    }
    reg_[place.reg] = tile;
    row_step_[place.reg] = row_bytes;
  }
}

void TileRunner::RunInTiles(int64_t begin, int64_t n) {
  if (plan_.whole_range) {
    RunTile(begin, 1, n);
    return;
  }
  for (int64_t done = 0; done < n; done += plan_.at_once) RunTile(begin + done, 1, std::min(plan_.at_once, n - done));
}

void TileRunner::ReadInput(int i, int64_t begin, int64_t rows, int64_t n) {
  const Walk walk = plan_.layout.walk[i];
  if (walk == Walk::kScalar || walk == Walk::kOfRow) return;  // it is there
  const auto size = static_cast<int64_t>(SizeOf(prepared_.program->inputs()[i]));
  const char* source = from_[i] + begin * size;
  const int64_t step = n * size + from_step_[i];
  if (tile_[i] == nullptr) {
    reg_[i] = source;
    row_step_[i] = step;
    return;
  }
  const InstrFn load = prepared_.loads[i];
  auto* to = static_cast<char*>(tile_[i]);
  reg_[i] = to;
  row_step_[i] = n * static_cast<int64_t>(plain::RegisterSize(prepared_.program->inputs()[i]));
  if (walk == Walk::kStrided) {
    void* const raw = load != nullptr ? block_.at(plan_.raw) : to;
    Gather(i, begin, n, raw);
    if (load != nullptr) load(to, raw, nullptr, nullptr, n);
    return;
  }
  for (int64_t r = 0; r < rows; ++r, to += row_step_[i], source += step) {
    if (load != nullptr) {
      load(to, source, nullptr, nullptr, n);
    } else {
      std::memcpy(to, source, n * size);
    }
  }
}

// `rows` rows of n elements each, one after the other.
void TileRunner::RunTile(int64_t begin, int64_t rows, int64_t n) {
  const Program& p = *prepared_.program;
  for (int i = 0; i < p.num_inputs(); ++i) ReadInput(i, begin, rows, n);
  for (const TileStep& step : plan_.steps) {
    auto* to = static_cast<char*>(tile_[step.result]);
    if (step.output >= 0) to = static_cast<char*>(args_.out[step.output]) + begin * step.result_size;
    const auto *a = static_cast<const char*>(reg_[step.a]), *b = static_cast<const char*>(reg_[step.b]),
               *c = static_cast<const char*>(reg_[step.c]);
    const int64_t row_bytes = n * step.result_size;
    if (rows == 1 || !step.by_row) {
      Note(step.run(to, a, b, c, rows * n), step.op);
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        Note(step.run(to + r * row_bytes, a + r * row_step_[step.a], b + r * row_step_[step.b],
                      c + r * row_step_[step.c], n),
             step.op);
      }
    }
    reg_[step.result] = to;
    row_step_[step.result] = row_bytes;
  }
  if (plan_.layout.stores_outputs == 0) return;
  for (int o : plan_.stored) {
    const int reg = p.outputs()[o];
    const DType type = p.output_type(o);
    const auto size = static_cast<int64_t>(SizeOf(type));
    char* dst = static_cast<char*>(args_.out[o]) + begin * size;
    const auto* from = static_cast<const char*>(reg_[reg]);
    for (int64_t r = 0; r < rows; ++r, dst += n * size, from += row_step_[reg]) {
      if (prepared_.stores[o] != nullptr) {
        prepared_.stores[o](dst, from, nullptr, nullptr, n);
      } else if (dst != from) {
        std::memmove(dst, from, n * size);
      }
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
