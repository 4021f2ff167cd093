#include "tensorflow_plugin/backends/gpu/primitives/product.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tensorflow_plugin/backends/gpu/codegen/sources.h"

namespace xpu::gpu {
namespace {

const std::string kTiles =
#include "tensorflow_plugin/backends/gpu/kernels/matmul/product_tiles.cl.inc"
    ;
const std::string kSum =
#include "tensorflow_plugin/backends/gpu/kernels/matmul/product_sum.cl.inc"
    ;
const std::string kProcessor =
#include "tensorflow_plugin/backends/gpu/kernels/matmul/product_processor.cl.inc"
    ;
const std::string kComplexProcessor =
#include "tensorflow_plugin/backends/gpu/kernels/matmul/product_complex.cl.inc"
    ;

constexpr int kRows = 6;  // of a processor's item: ROWS there

// Rows of what is summed up in local memory: STEP there.
int64_t StepOf(DType type) { return SumSize(type) > 8 ? 8 : 16; }

// Sums that are loaded as one: of 16 bytes, but a complex number is a vector by itself.
int PieceOf(DType type) { return IsComplex(type) ? 1 : static_cast<int>(16 / SumSize(type)); }

// Integers wrap, which only unsigned ones do by themselves.
std::string SumOf(DType type) { return !IsInteger(type) ? RegisterOf(type) : SumSize(type) == 8 ? "ulong" : "uint"; }

}  // namespace

int64_t ItemRows(const Hardware& hardware) { return hardware.is_processor ? kRows : 1; }

size_t SumSize(DType type) { return SizeOf(type) < 8 ? 4 : SizeOf(type); }

std::string ProductElements(DType type) { return ProductElements(type, type, type); }

std::string ProductElements(DType a, DType b, DType type) {
  const std::string real =
      IsComplex(type) ? errors::Concat("#define COMPLEX\n#define REAL ", RegisterOf(RealTypeOf(type)), "\n") : "";
  return FunctionsFor(type) + real +
         errors::Concat("#define T ", RegisterOf(type), "\n#define SUM ", SumOf(type), "\n#define LOAD_A(i) ",
                        Load(a, "a", "i"), "\n#define LOAD_B(i) ", Load(b, "b", "i"), "\n#define STORE_C(i, x) ",
                        Store(type, "c", "i", "x"));
}

std::string KernelEpilogue::Text() const {
  if (!walk_) return "#define EPILOGUE_PARAMETERS\n#define FINISH(at, value) STORE_C(at, value)\n";
  return errors::Concat(FunctionsFor(*program_), "void finish(const T element, const ", walk_->index_type(), " i",
                        walk_->Parameters(), ") {\n", walk_->Statements("element"), "}\n#define EPILOGUE_PARAMETERS",
                        walk_->Parameters(), "\n#define FINISH(at, value) finish(", Cast(type_, type_, "value"), ", at",
                        walk_->Arguments(), ")\n");
}

void KernelEpilogue::SetArguments(Call& call, const Args& args) const {
  if (walk_) walk_->SetArguments(call, args.in + 2, args.out);
}

namespace {

std::string ProductSource(const Hardware& hardware, const Products& products, const Tile& tile,
                          const std::string& epilogue) {
  const DType type = products.type, b_type = products.b_type != DType::kInvalid ? products.b_type : type;
  const std::string front =
      ProductElements(products.a_type != DType::kInvalid ? products.a_type : type, b_type, type) + epilogue;
  if (!hardware.is_processor) {
    const std::string fused = IsInteger(type)   ? "((v) * (w) + (z))"
                              : IsComplex(type) ? errors::Concat(RegisterOf(type), "_fma(v, w, z)")
                                                : "fma(v, w, z)";
    const int piece = PieceOf(type);
    const std::string vector = piece == 1 ? SumOf(type) : errors::Concat(SumOf(type), piece);
    return front + errors::Concat("#define SIDE ", tile.side, "\n#define EACH ", tile.width, "\n#define STEP ",
                                  StepOf(type), "\n#define PIECE ", piece, "\n#define VECTOR ", vector,
                                  "\n#define A_DENSE ", products.a_dense ? 1 : 0, "\n#define B_DENSE ",
                                  products.b_dense ? 1 : 0, "\n#define ADD_PRODUCT(v, w, z) ", fused, "\n",
                                  products.operands(), kTiles);
  }
  const int width = tile.width;
  if (IsComplex(type)) {
    return front + errors::Concat("#define WIDTH ", width, "\n#define PAIRS ", 2 * width, "\n", products.operands(),
                                  kComplexProcessor);
  }
  const bool dense = SizeOf(b_type) == SumSize(type);
  return front + errors::Concat("#define WIDTH ", width, "\n#define VECTOR ", SumOf(type), width,
                                "\n#define LOAD_VECTOR vload", width, "\n#define STORE_VECTOR vstore", width,
                                "\n#define DENSE ", dense ? 1 : 0, "\n", products.operands(), kProcessor);
}

int BitsOf(int64_t extent) {
  int bits = 0;
  while (extent >> bits > 1) ++bits;
  return bits;
}

// A trial counts for all products of a kind: of the same operands, with extents between the same powers of two.
uint64_t KindOf(const Products& products) {
  uint64_t kind = static_cast<uint64_t>(products.kind) << 8 | static_cast<uint64_t>(products.type);
  for (int64_t extent : {products.m, products.n, products.k, products.batches}) {
    kind = kind << 6 | static_cast<uint64_t>(BitsOf(extent));
  }
  return kind;
}

std::string NameOf(uint64_t kind, const std::vector<Tile>& tiles) {
  std::string name = errors::Concat("tiles of products ", kind, " ", HashOf(kTiles + kProcessor));
  for (const Tile& tile : tiles) name += errors::Concat(" ", tile.side, "x", tile.width);
  return name;
}

// Enqueues them in groups of these tiles.
Status RunWith(const Tile& tile, Machine& machine, Queue& queue, const Products& products, const Args& args,
               const KernelEpilogue& epilogue, std::shared_ptr<const CommandTime>* time) {
  const Hardware& hardware = machine.hardware();
  const char* const dense = hardware.is_processor ? ""
                            : products.a_dense    ? products.b_dense ? " ab" : " a"
                            : products.b_dense    ? " b"
                                                  : " -";
  Call call(machine, queue, errors::Concat(products.key, dense, " ", tile.side, "x", tile.width, epilogue.Key()),
            [&] { return ProductSource(hardware, products, tile, epilogue.Text()); });
  for (int64_t extent : {products.m, products.n, products.k}) call.Value(static_cast<uint64_t>(extent));
  products.set_arguments(call);
  epilogue.SetArguments(call, args);
  const auto tiles = [](int64_t extent, int64_t of_tile) {
    return static_cast<size_t>((extent + of_tile - 1) / of_tile);
  };
  const auto batches = static_cast<size_t>(products.batches);
  if (hardware.is_processor) {
    // Columns are two vectors; of complex numbers the vectors are the parts of one column each.
    const int64_t columns = IsComplex(products.type) ? tile.width : 2 * tile.width;
    // Rows first: they read the same columns of b.
    const size_t groups[] = {tiles(products.m, kRows), tiles(products.n, columns), batches};
    const size_t local[] = {1, 1, 1};
    return call.RunGroups(groups, local, time);
  }
  const int64_t side = tile.side, extent = side * tile.width;
  const size_t groups[] = {tiles(products.n, extent) * tiles(products.m, extent) * batches, 1, 1};
  const size_t local[] = {static_cast<size_t>(side), static_cast<size_t>(side), 1};
  return call.RunGroups(groups, local, time);
}

}  // namespace

std::vector<Tile> TilesFor(const Hardware& hardware, DType type, int64_t m, int64_t n, int64_t batches) {
  if (hardware.is_processor) {
    // So that sums and what they are made of are in registers, of which some processors' are twice as wide. Pairs of
    // complex numbers fill the widest vectors that there are.
    const int width = SizeOf(RealTypeOf(type)) == 8 ? 4 : 8;
    return IsComplex(type) ? std::vector<Tile>{{1, width}} : std::vector<Tile>{{1, width}, {1, 2 * width}};
  }
  // The largest reads the least memory; those before the first of which there is one for each unit leave some idle.
  std::vector<Tile> few, tiles;
  for (const Tile& tile : {Tile{16, 8}, Tile{16, 4}, Tile{8, 8}, Tile{8, 4}}) {
    const int64_t extent = tile.side * tile.width;
    const int64_t bytes = 2 * StepOf(type) * (extent + PieceOf(type)) * static_cast<int64_t>(SumSize(type));
    const auto items = static_cast<size_t>(tile.side * tile.side);
    if (items > hardware.largest_group || bytes > hardware.local_memory_bytes) continue;
    int64_t groups = int64_t{1} << BitsOf(batches);
    for (int64_t of : {m, n}) groups *= std::max<int64_t>(1, (int64_t{1} << BitsOf(of)) / extent);
    (tiles.empty() && groups < hardware.compute_units ? few : tiles).push_back(tile);
  }
  if (tiles.empty()) std::reverse(few.begin(), few.end());  // the smallest keep the most units busy
  tiles.insert(tiles.end(), few.begin(), few.end());
  return tiles.empty() ? std::vector<Tile>{{8, 4}} : tiles;
}

Status AddParts(Machine& machine, Queue& queue, DType type, int64_t items, int64_t parts, const Args& args,
                const KernelEpilogue& epilogue) {
  Call call(machine, queue, errors::Concat("sum of parts ", Name(type), epilogue.Key()),
            [&] { return ProductElements(type) + epilogue.Text() + kSum; });
  call.Value(static_cast<uint64_t>(items)).Value(static_cast<uint32_t>(parts));
  call.Memory(args.workspace).Memory(args.out[0]);
  epilogue.SetArguments(call, args);
  return call.Run(items);
}

Status RunProducts(Machine& machine, Queue& queue, const Products& products, const Args& args,
                   const KernelEpilogue& epilogue) {
  using Clock = std::chrono::steady_clock;
  const std::vector<Tile> tiles = TilesFor(machine.hardware(), products.type, products.m, products.n, products.batches);
  const uint64_t kind = KindOf(products);
  const double work = static_cast<double>(products.m) * static_cast<double>(products.n) *
                      static_cast<double>(products.k) * static_cast<double>(products.batches);
  TileSearch::Choice run = machine.tiles().Next(machine.compiler(), kind, static_cast<int>(tiles.size()), work,
                                                [&] { return NameOf(kind, tiles); });
  run.timed = run.timed && !queue.is_capturing();
  const Clock::time_point began = Clock::now();
  std::shared_ptr<const CommandTime> time;
  const Status status = RunWith(tiles[static_cast<size_t>(run.way)], machine, queue, products, args, epilogue,
                                run.timed ? &time : nullptr);
  if (!status.ok() && run.way != 0) {
    // Such as a kernel that needs more registers than there are for so many items.
    machine.tiles().CannotRun(kind, run);
    return RunWith(tiles[0], machine, queue, products, args, epilogue, nullptr);
  }
  if (status.ok() && run.timed) {
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    machine.tiles().Ran(kind, run, work, seconds, std::move(time));
  }
  return status;
}

}  // namespace xpu::gpu
