#include "tensorflow_plugin/backends/cpu/elementwise/tile_plan.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

using Walk = TileLayout::Walk;

static_assert(std::has_unique_object_representations_v<TileLayout>, "layouts are compared as bytes");
static_assert(Program::kMaxInputs <= 16, "inputs_at has a bit for each input");

// Tiles begin at different distances from multiples of 4 KiB, which a processor's nearest cache takes for one address.
constexpr size_t kBetweenTiles = 64;
// Plans that a program keeps. Programs have one or two; a few have their operands in every order.
constexpr size_t kMostPlans = 16;

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
    p.constants.emplace_back(new char[kTileElements * size + kTileAlignment]);
    RepeatRegister(element, size, kTileElements, AlignedTile(p.constants.back().get()));
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

struct Bytes16 {
  uint64_t a, b;
};

template <typename T>
void RepeatAs(const void* element, int64_t n, void* to) {
  T value;
  std::memcpy(&value, element, sizeof(value));
  std::fill_n(static_cast<T*>(to), n, value);
}

// Makes the plan of a program for one layout.
class PlanMaker {
 public:
  PlanMaker(const PreparedProgram& prepared, const TileLayout& layout)
      : prepared_(prepared),
        p_(*prepared.program),
        values_(p_.num_registers(), Values::kOfElements),
        in_full_(p_.num_registers(), 0),
        in_tile_(p_.num_registers(), 0) {
    plan_.layout = layout;
  }

  TilePlan Make() &&;

 private:
  // The values of a register: one for each element, one for each row, or one for all.
  enum class Values : uint8_t { kOfElements, kOfRows, kOne };

  void ChooseSteps();
  void PlaceInputs();
  void PlaceResults();
  uint32_t NewPlace(size_t register_size);
  bool IsDirect(int output, int result) const;
  bool IsOne(int reg) const { return values_[reg] != Values::kOfElements; }
  // An input that is read in place. One that is converted lies in a tile, row after row.
  bool IsInRow(int reg) const {
    return reg < p_.num_inputs() && plan_.layout.walk[reg] == Walk::kInRow && prepared_.loads[reg] == nullptr;
  }
  std::vector<TilePlace>& Repeated(int reg) {
    return values_[reg] == Values::kOne ? plan_.repeated : plan_.repeated_of_row;
  }

  const PreparedProgram& prepared_;
  const Program& p_;
  TilePlan plan_;
  std::vector<Values> values_;              // by register
  std::vector<uint8_t> in_full_, in_tile_;  // by register: read as a whole tile, a result in the block
  int64_t register_bytes_ = 0;              // of an element, in the block
};

TilePlan PlanMaker::Make() && {
  for (int i = 0; i < p_.num_inputs(); ++i) {
    const Walk walk = plan_.layout.walk[i];
    values_[i] = walk == Walk::kScalar ? Values::kOne : walk == Walk::kOfRow ? Values::kOfRows : Values::kOfElements;
  }
  for (int reg = p_.num_inputs(); reg < p_.first_instr_register(); ++reg) values_[reg] = Values::kOne;
  ChooseSteps();
  PlaceInputs();
  PlaceResults();
  // The registers of a large program should stay in the nearest cache, too. (Results that stay in tiles are those of
  // all that was run.)
  constexpr int64_t kNearestCache = 40 << 10;
  int64_t bytes = register_bytes_;
  for (int i = 0; i < p_.num_inputs(); ++i) {
    const Walk walk = plan_.layout.walk[i];
    if (walk == Walk::kContiguous || walk == Walk::kInRow) bytes += static_cast<int64_t>(SizeOf(p_.inputs()[i]));
  }
  for (const TileStep& step : plan_.steps) {
    if (step.output >= 0) bytes += step.result_size;
  }
  if (plan_.layout.stores_outputs != 0 && bytes * kTileElements > kNearestCache) plan_.at_once = kTileElements / 2;
  return std::move(plan_);
}

// Values that all elements share are computed once, and those that a row shares once for it. If one of two operands is
// such a value, it takes no place in the cache.
void PlanMaker::ChooseSteps() {
  for (size_t k = 0; k < p_.instrs().size(); ++k) {
    const Instr& i = p_.instrs()[k];
    const uint16_t operands[] = {i.a, i.b, i.c};
    const int arity = Info(i.op).arity, result = p_.first_instr_register() + static_cast<int>(k);
    TileStep step{prepared_.instrs[k], i.a, i.b, i.c, static_cast<uint16_t>(result), false, -1, 0, i.op};
    step.result_size = static_cast<uint8_t>(plain::RegisterSize(p_.type(result)));
    values_[result] = Values::kOne;
    for (int o = 0; o < arity; ++o) values_[result] = std::min(values_[result], values_[operands[o]]);
    if (IsOne(result)) {
      (values_[result] == Values::kOne ? plan_.once : plan_.of_row).push_back(step);
      continue;
    }
    int one = -1;
    if (arity == 2) one = IsOne(i.b) ? 1 : IsOne(i.a) ? 0 : -1;
    const InstrFn of_one = one < 0 ? nullptr : prepared_.of_one[one][k];
    if (of_one != nullptr) {
      step.run = of_one;
      step.by_row = values_[operands[one]] == Values::kOfRows;
    }
    for (int o = 0; o < arity; ++o) {
      if (of_one == nullptr || o != one) in_full_[operands[o]] = 1;
      step.by_row = step.by_row || IsInRow(operands[o]);
    }
    plan_.steps.push_back(step);
  }
  for (int r : p_.outputs()) in_full_[r] = 1;
}

void PlanMaker::PlaceInputs() {
  size_t raw_size = 0;
  for (int i = 0; i < p_.num_inputs(); ++i) {
    const size_t size = plain::RegisterSize(p_.inputs()[i]);
    if (IsOne(i)) {
      if (values_[i] == Values::kOfRows && prepared_.loads[i] != nullptr) {
        plan_.tiles.push_back({static_cast<uint16_t>(i), static_cast<uint16_t>(size), NewPlace(size)});
      }
      if (in_full_[i] == 0) continue;
      Repeated(i).push_back({static_cast<uint16_t>(i), static_cast<uint16_t>(size), NewPlace(size)});
      continue;
    }
    // An input that is itself an output, and that another output overwrites, is read before that happens.
    bool overwritten = false;
    for (int o = 0; o < p_.num_outputs(); ++o) {
      overwritten = overwritten || (plan_.layout.Shares(o, i) && p_.outputs()[o] != i);
    }
    const bool saved = overwritten && prepared_.last_use[i] == static_cast<int>(p_.instrs().size());
    const bool converted = prepared_.loads[i] != nullptr;
    if (plan_.layout.walk[i] == Walk::kStrided || converted || saved) {
      plan_.tiles.push_back({static_cast<uint16_t>(i), static_cast<uint16_t>(size), NewPlace(size)});
    }
    if (plan_.layout.walk[i] == Walk::kStrided && converted) raw_size = std::max(raw_size, SizeOf(p_.inputs()[i]));
  }
  if (raw_size != 0) plan_.raw = NewPlace(raw_size);
  for (int reg = p_.num_inputs(); reg < p_.first_instr_register(); ++reg) {
    plan_.whole_range = plan_.whole_range && in_full_[reg] == 0;
  }
}

// A result goes straight to its output where nothing that is read later lies there.
bool PlanMaker::IsDirect(int output, int result) const {
  if (prepared_.stores[output] != nullptr || IsOne(result)) return false;
  for (int i = 0; i < p_.num_inputs(); ++i) {
    if (plan_.layout.Shares(output, i) && prepared_.last_use[i] > result - p_.first_instr_register()) return false;
  }
  return true;
}

void PlanMaker::PlaceResults() {
  const int first = p_.first_instr_register();
  std::vector<int> output_of(p_.num_registers(), -1);
  for (int o = 0; plan_.layout.stores_outputs != 0 && o < p_.num_outputs(); ++o) {
    const int r = p_.outputs()[o];
    if (r < first) plan_.whole_range = plan_.whole_range && p_.num_outputs() == 1;
    if (r >= first && output_of[r] < 0 && IsDirect(o, r)) {
      output_of[r] = o;
    } else {
      plan_.stored.push_back(o);
    }
  }
  for (TileStep& step : plan_.steps) {
    step.output = static_cast<int8_t>(output_of[step.result]);
  }
  // Tiles of the other results, each reused once its register has been read for the last time.
  std::vector<TilePlace> free;
  std::vector<TilePlace> place_of(p_.num_registers());
  for (int r = first; r < p_.num_registers(); ++r) {
    const uint16_t size = static_cast<uint16_t>(plain::RegisterSize(p_.type(r)));
    TilePlace& place = place_of[r];
    place = {static_cast<uint16_t>(r), size, 0};
    if (IsOne(r)) {
      if (values_[r] == Values::kOfRows) plan_.tiles.push_back({place.reg, size, NewPlace(size)});
      if (in_full_[r] != 0) {
        place.offset = NewPlace(size);
        Repeated(r).push_back(place);
      }
    } else if (output_of[r] < 0) {
      plan_.whole_range = false;
      const auto found = std::find_if(free.begin(), free.end(), [&](const auto& f) { return f.register_size == size; });
      if (found != free.end()) {
        place.offset = found->offset;
        free.erase(found);
      } else {
        place.offset = NewPlace(size);
      }
      plan_.tiles.push_back(place);
      in_tile_[r] = 1;
    }
    for (int q : prepared_.read_last[r - first]) {
      if (q >= first && in_tile_[q] != 0) free.push_back(place_of[q]);
    }
  }
}

uint32_t PlanMaker::NewPlace(size_t register_size) {
  plan_.whole_range = false;
  register_bytes_ += static_cast<int64_t>(register_size);
  const auto place = static_cast<uint32_t>(plan_.block_bytes);
  plan_.block_bytes += static_cast<int64_t>(kTileElements * register_size + kBetweenTiles);
  return place;
}

}  // namespace

bool TileLayout::operator==(const TileLayout& o) const { return std::memcmp(this, &o, sizeof(o)) == 0; }

TileLayout LayoutOf(const ElementwiseDesc& desc, const Args& args, bool stores_outputs) {
  TileLayout layout;
  layout.stores_outputs = stores_outputs ? 1 : 0;
  const int rank = desc.shape.rank(), inputs = desc.program->num_inputs();
  bool has_strided = false, fits_rows = stores_outputs && rank > 1 && desc.shape[rank - 1] >= kFewestInRow;
  for (int i = 0; i < inputs; ++i) {
    const Dims& strides = desc.in_strides[i];
    bool scalar = true, dense = true;
    int64_t expected = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (desc.shape[d] == 1) continue;
      scalar = scalar && strides[d] == 0;
      dense = dense && strides[d] == expected;
      expected *= desc.shape[d];
    }
    layout.walk[i] = dense ? Walk::kContiguous : scalar ? Walk::kScalar : Walk::kStrided;
    if (layout.walk[i] != Walk::kStrided) continue;
    has_strided = true;
    fits_rows = fits_rows && (strides[rank - 1] == 0 || strides[rank - 1] == 1);
  }
  if (has_strided && fits_rows) {
    layout.by_rows = 1;
    for (int i = 0; i < inputs; ++i) {
      if (layout.walk[i] != Walk::kStrided) continue;
      layout.walk[i] = desc.in_strides[i][rank - 1] == 0 ? Walk::kOfRow : Walk::kInRow;
    }
  }
  for (int o = 0; stores_outputs && o < desc.program->num_outputs(); ++o) {
    unsigned at = 0;
    for (int i = 0; i < inputs; ++i) at |= static_cast<unsigned>(args.in[i] == args.out[o]) << i;
    layout.inputs_at[o] = static_cast<uint16_t>(at);
  }
  return layout;
}

const PreparedProgram& Prepare(const Program* program) {
  // Per thread, so that looking one up takes no lock; per instruction set, since tests change it.
  thread_local std::unordered_map<const Program*, PreparedProgram> prepared[kNumIsas];
  auto& table = prepared[static_cast<int>(ActiveIsa())];
  auto found = table.find(program);
  if (found == table.end()) found = table.emplace(program, Make(program)).first;
  return found->second;
}

const TilePlan& PreparedProgram::PlanFor(const TileLayout& layout, std::unique_ptr<TilePlan>* own) const {
  for (const auto& plan : plans_) {
    if (plan->layout == layout) return *plan;
  }
  auto made = std::make_unique<TilePlan>(PlanMaker(*this, layout).Make());
  std::unique_ptr<TilePlan>& place = plans_.size() < kMostPlans ? plans_.emplace_back() : *own;
  place = std::move(made);
  return *place;
}

void RepeatRegister(const void* element, size_t register_size, int64_t n, void* to) {
  switch (register_size) {
    case 1:
      return RepeatAs<uint8_t>(element, n, to);
    case 2:
      return RepeatAs<uint16_t>(element, n, to);
    case 4:
      return RepeatAs<uint32_t>(element, n, to);
    case 8:
      return RepeatAs<uint64_t>(element, n, to);
    default:
      return RepeatAs<Bytes16>(element, n, to);
  }
}

}  // namespace xpu::cpu
