#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

// The free tile buffers of this thread, by the logarithm of their register size (1 to 16 bytes).
std::vector<std::unique_ptr<char[]>>& FreeTiles(size_t register_size) {
  thread_local std::vector<std::unique_ptr<char[]>> free[5];
  int log = 0;
  while ((size_t{1} << log) < register_size) ++log;
  return free[log];
}

// With room to align.
size_t TileBytes(size_t register_size) { return TileRunner::kTile * register_size + 64; }

TileBuffer NewTile(size_t register_size) {
  auto& free = FreeTiles(register_size);
  char* buffer;
  if (free.empty()) {
    buffer = new char[TileBytes(register_size)];
  } else {
    buffer = free.back().release();
    free.pop_back();
  }
  return TileBuffer(buffer, RecycleTile{register_size});
}

// The first 64-byte aligned address of a buffer.
char* Aligned(char* buffer) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(buffer) + 63) & ~uintptr_t{63});
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

// Repeats one register `n` times.
void Repeat(const void* element, size_t register_size, int64_t n, void* dst) {
  WithSize(register_size, [&](auto value) {
    std::memcpy(&value, element, sizeof(value));
    auto* out = static_cast<decltype(value)*>(dst);
    for (int64_t k = 0; k < n; ++k) out[k] = value;
  });
}

PreparedProgram Make(const Program* program) {
  PreparedProgram p;
  p.program = program;
  p.last_use.assign(program->num_registers(), -1);
  p.cost_per_element = NsPerElement(*program);
  int number = 0;
  for (const Instr& i : program->instrs()) {
    p.instrs.push_back(FindInstr(i.op, i.type, i.result));
    for (int operand : {0, 1}) {
      p.of_one[operand].push_back(Info(i.op).arity == 2 ? FindInstrOfOne(i.op, i.type, operand) : nullptr);
    }
    p.last_use[i.a] = number;
    if (Info(i.op).arity > 1) p.last_use[i.b] = number;
    if (Info(i.op).arity > 2) p.last_use[i.c] = number;
    ++number;
  }
  for (const Constant& c : program->constants()) {
    char element[16];
    plain::StoreConstant(c, element);
    const size_t size = plain::RegisterSize(c.type);
    p.constants.emplace_back(new char[TileBytes(size)]);
    Repeat(element, size, TileRunner::kTile, Aligned(p.constants.back().get()));
  }
  for (DType t : program->inputs()) p.loads.push_back(FindLoad(t));
  for (int i = 0; i < program->num_outputs(); ++i) {
    p.stores.push_back(FindStore(program->output_type(i)));
    p.last_use[program->outputs()[i]] = number;
  }
  p.read_last.resize(program->instrs().size());
  for (int reg = 0; reg < program->num_registers(); ++reg) {
    if (p.last_use[reg] >= 0 && p.last_use[reg] < number) p.read_last[p.last_use[reg]].push_back(reg);
  }
  return p;
}

}  // namespace

void RecycleTile::operator()(char* buffer) const { FreeTiles(register_size).emplace_back(buffer); }

const PreparedProgram& Prepare(const Program* program) {
  // Per thread, so that looking one up takes no lock; per instruction set, since tests change it.
  thread_local std::unordered_map<const Program*, PreparedProgram> prepared[kNumIsas];
  auto& table = prepared[static_cast<int>(ActiveIsa())];
  auto found = table.find(program);
  if (found == table.end()) found = table.emplace(program, Make(program)).first;
  return found->second;
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
    : desc_(desc), args_(args), prepared_(Prepare(desc.program)), store_outputs_(store_outputs) {
  const Program& p = *desc.program;
  const int rank = desc.shape.rank();
  std::fill_n(is_one_, p.num_registers(), false);
  std::fill_n(in_full_, p.num_registers(), false);
  std::fill_n(tile_, p.num_registers(), nullptr);
  for (int i = 0; i < p.num_inputs(); ++i) {
    const Dims& s = desc.in_strides[i];
    bool scalar = true, dense = true;
    int64_t expected = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (desc.shape[d] == 1) continue;
      scalar = scalar && s[d] == 0;
      dense = dense && s[d] == expected;
      expected *= desc.shape[d];
    }
    walk_[i] = dense ? Walk::kContiguous : scalar ? Walk::kScalar : Walk::kStrided;
    if (walk_[i] == Walk::kScalar) ReadElement(i);
  }
  for (size_t c = 0; c < p.constants().size(); ++c) {
    const size_t reg = p.num_inputs() + c;
    is_one_[reg] = true;
    reg_[reg] = Aligned(prepared_.constants[c].get());
  }
  ChooseSteps();

  size_t raw_size = 0;
  for (int i = 0; i < p.num_inputs(); ++i) {
    if (is_one_[i]) {
      if (in_full_[i]) reg_[i] = tile_[i] = Filled(i);
      continue;
    }
    // An input that is itself an output, and that another output overwrites, is read before that happens.
    bool overwritten = false;
    for (int o = 0; store_outputs && o < p.num_outputs(); ++o) {
      overwritten = overwritten || (args.out[o] == args.in[i] && p.outputs()[o] != i);
    }
    const bool saved = overwritten && prepared_.last_use[i] == static_cast<int>(p.instrs().size());
    const bool converted = prepared_.loads[i] != nullptr;
    if (walk_[i] != Walk::kContiguous || converted || saved) {
      tile_[i] = NewBuffer(plain::RegisterSize(p.inputs()[i]));
      whole_range_ = false;
    }
    if (walk_[i] == Walk::kStrided && converted) raw_size = std::max(raw_size, SizeOf(p.inputs()[i]));
  }
  if (raw_size != 0) raw_ = NewBuffer(raw_size);
  for (int reg = p.num_inputs(); reg < p.first_instr_register(); ++reg) whole_range_ = whole_range_ && !in_full_[reg];
  PlaceResults();
  // The registers of a large program should stay in the nearest cache, too. (Results that stay in tiles are those of
  // all that was run.)
  constexpr int64_t kNearestCache = 40 << 10;
  if (store_outputs && BytesAtOnce() * kTile > kNearestCache) at_once_ = kTile / 2;
}

int64_t TileRunner::BytesAtOnce() const {
  const Program& p = *prepared_.program;
  int64_t bytes = 0;
  for (const TileBuffer& buffer : buffers_) bytes += static_cast<int64_t>(buffer.get_deleter().register_size);
  for (int i = 0; i < p.num_inputs(); ++i) {
    if (walk_[i] == Walk::kContiguous) bytes += static_cast<int64_t>(SizeOf(p.inputs()[i]));
  }
  for (int r = p.first_instr_register(); r < p.num_registers(); ++r) {
    if (direct_output_[r] >= 0) bytes += static_cast<int64_t>(SizeOf(p.type(r)));
  }
  return bytes;
}

void TileRunner::ReadElement(int input) {
  const InstrFn load = prepared_.loads[input];
  if (load != nullptr) {
    load(element_[input], args_.in[input], nullptr, nullptr, 1);
  } else {
    std::memcpy(element_[input], args_.in[input], SizeOf(prepared_.program->inputs()[input]));
  }
  is_one_[input] = true;
  reg_[input] = element_[input];
}

// Values that all elements share are computed once; if one of two operands is such a value, it takes no place in the
// cache.
void TileRunner::ChooseSteps() {
  const Program& p = *prepared_.program;
  for (size_t k = 0; k < p.instrs().size(); ++k) {
    const Instr& i = p.instrs()[k];
    const uint16_t operands[] = {i.a, i.b, i.c};
    const int arity = Info(i.op).arity, result = p.first_instr_register() + static_cast<int>(k);
    if (std::all_of(operands, operands + arity, [&](int reg) { return is_one_[reg]; })) {
      const bool failed = prepared_.instrs[k](element_[result], reg_[i.a], reg_[i.b], reg_[i.c], 1);
      if (failed && status_.ok()) status_ = plain::InstrFailure(i.op);
      is_one_[result] = true;
      reg_[result] = element_[result];
      continue;
    }
    int one = -1;
    if (arity == 2) one = is_one_[i.b] ? 1 : is_one_[i.a] ? 0 : -1;
    const InstrFn of_one = one < 0 ? nullptr : prepared_.of_one[one][k];
    steps_[num_steps_++] = {of_one != nullptr ? of_one : prepared_.instrs[k], static_cast<int>(k)};
    for (int o = 0; o < arity; ++o) in_full_[operands[o]] = in_full_[operands[o]] || of_one == nullptr || o != one;
  }
  for (int r : p.outputs()) in_full_[r] = true;
}

// A tile of a register of one element, filled for good; no further than there are elements to combine it with.
void* TileRunner::Filled(int reg) {
  const size_t size = plain::RegisterSize(prepared_.program->type(reg));
  void* const tile = NewBuffer(size);
  Repeat(element_[reg], size, std::min(kTile, desc_.shape.num_elements()), tile);
  whole_range_ = false;
  return tile;
}

void TileRunner::PlaceResults() {
  const Program& p = *prepared_.program;
  const int first = p.first_instr_register();
  // A result goes straight to its output where nothing that is read later lies there.
  for (int r = first; r < p.num_registers(); ++r) direct_output_[r] = -1;
  for (int o = 0; store_outputs_ && o < p.num_outputs(); ++o) {
    const int r = p.outputs()[o];
    if (r < first) {
      whole_range_ = whole_range_ && p.num_outputs() == 1;
      continue;
    }
    bool direct = prepared_.stores[o] == nullptr && direct_output_[r] < 0 && !is_one_[r];
    for (int i = 0; direct && i < p.num_inputs(); ++i) {
      if (args_.in[i] == args_.out[o] && prepared_.last_use[i] > r - first) direct = false;
    }
    if (direct) direct_output_[r] = static_cast<int8_t>(o);
  }
  // Tiles of the other results, each reused once its register has been read for the last time.
  struct Free {
    void* buffer;
    size_t size;
  };
  std::vector<Free> free;
  for (int r = first; r < p.num_registers(); ++r) {
    const size_t size = plain::RegisterSize(p.type(r));
    if (is_one_[r]) {
      if (in_full_[r]) reg_[r] = tile_[r] = Filled(r);
    } else if (direct_output_[r] < 0) {
      whole_range_ = false;
      for (size_t f = 0; f < free.size(); ++f) {
        if (free[f].size != size) continue;
        tile_[r] = free[f].buffer;
        free.erase(free.begin() + f);
        break;
      }
      if (tile_[r] == nullptr) tile_[r] = NewBuffer(size);
    }
    for (int q : prepared_.read_last[r - first]) {
      if (q >= first && tile_[q] != nullptr && !is_one_[q]) {
        free.push_back({tile_[q], plain::RegisterSize(p.type(q))});
      }
    }
  }
}

void* TileRunner::NewBuffer(size_t register_size) {
  buffers_.push_back(NewTile(register_size));
  return Aligned(buffers_.back().get());
}

void TileRunner::Run(int64_t begin, int64_t n) {
  if (whole_range_) {
    RunTile(begin, n);
    return;
  }
  for (int64_t done = 0; done < n; done += at_once_) RunTile(begin + done, std::min(at_once_, n - done));
}

void TileRunner::RunTile(int64_t begin, int64_t n) {
  const Program& p = *prepared_.program;
  const int first = p.first_instr_register();
  for (int i = 0; i < p.num_inputs(); ++i) {
    const size_t size = SizeOf(p.inputs()[i]);
    const InstrFn load = prepared_.loads[i];
    if (walk_[i] == Walk::kContiguous) {
      const char* source = static_cast<const char*>(args_.in[i]) + begin * size;
      if (load != nullptr) {
        load(tile_[i], source, nullptr, nullptr, n);
        reg_[i] = tile_[i];
      } else if (tile_[i] != nullptr) {
        std::memcpy(tile_[i], source, n * size);
        reg_[i] = tile_[i];
      } else {
        reg_[i] = source;
      }
    } else if (walk_[i] == Walk::kStrided) {
      if (load != nullptr) {
        Gather(i, begin, n, raw_);
        load(tile_[i], raw_, nullptr, nullptr, n);
      } else {
        Gather(i, begin, n, tile_[i]);
      }
      reg_[i] = tile_[i];
    }
  }
  for (int k = 0; k < num_steps_; ++k) {
    const TileStep& step = steps_[k];
    const Instr& instr = p.instrs()[step.instr];
    const int r = first + step.instr;
    void* dst = tile_[r];
    if (direct_output_[r] >= 0) {
      dst = static_cast<char*>(args_.out[direct_output_[r]]) + begin * SizeOf(p.type(r));
    }
    const bool failed = step.run(dst, reg_[instr.a], reg_[instr.b], reg_[instr.c], n);
    reg_[r] = dst;
    if (__builtin_expect(failed, 0) && status_.ok()) status_ = plain::InstrFailure(instr.op);
  }
  if (!store_outputs_) return;
  for (int o = 0; o < p.num_outputs(); ++o) {
    const int r = p.outputs()[o];
    if (r >= first && direct_output_[r] == o) continue;
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
