// Tiles of the OpenCL backend's products: all give the same bits, and what was found out about their speeds is kept.
#include <dirent.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/gpu/primitives/product.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/backends/opencl/machine.h"
#include "tensorflow_plugin/backends/opencl/queue.h"

namespace xpu::opencl {
namespace {

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Tiles : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(UsedHardware().empty()) << WhyNone();
    cache_ = ::testing::TempDir() + "/tiles_XXXXXX";
    ASSERT_NE(mkdtemp(cache_.data()), nullptr);
    const char* const before = std::getenv("XDG_CACHE_HOME");
    if (before != nullptr) before_ = before;
    setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
    limits_.least_work = 0;
    limits_.patience = 1;
    limits_.runs = 2;
    limits_.seconds = 1e9;
    Begin();
  }

  void TearDown() override {
    if (cache_.empty()) return;
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  // As a process does that finds what others left.
  void Begin() {
    queue_ = nullptr;
    machine_ = nullptr;
    Memory::Options options;
    options.limit = 64 << 20;
    options.device = "XPU:0";
    ASSERT_TRUE(Machine::Create(*UsedHardware().front(), options, &machine_).ok());
    ASSERT_TRUE(Queue::Create(machine_->hardware(), machine_->context(), machine_->memory(), nullptr, &queue_).ok());
    machine_->tiles().SetLimits(limits_);
  }

  // Files of the cache that have these words.
  std::vector<std::string> FilesWith(const std::string& words) const {
    std::vector<std::string> found;
    const std::string folder = cache_ + "/tensorflow_xpu/opencl";
    DIR* const listed = opendir(folder.c_str());
    if (listed == nullptr) return found;
    while (const dirent* entry = readdir(listed)) {
      const std::string path = folder + "/" + entry->d_name;
      if (entry->d_name[0] != '.' && ContentsOf(path).find(words) != std::string::npos) found.push_back(path);
    }
    closedir(listed);
    return found;
  }

  // The command's results for these operands.
  template <typename T, typename Desc>
  std::vector<T> Run(const Desc& desc, const std::vector<T>& a, const std::vector<T>& b, size_t size) {
    Memory& memory = machine_->memory();
    Args args{};
    std::vector<void*> all;
    const auto place = [&](size_t bytes) {
      all.push_back(memory.Allocate(bytes));
      return all.back();
    };
    void* const in[] = {place(a.size() * sizeof(T)), place(b.size() * sizeof(T))};
    args.in[0] = in[0];
    args.in[1] = in[1];
    args.out[0] = place(size * sizeof(T));
    if (const int64_t bytes = gpu::WorkspaceBytes(desc)) args.workspace = place(static_cast<size_t>(bytes));
    EXPECT_TRUE(queue_->CopyHostToDevice(in[0], a.data(), a.size() * sizeof(T)).ok());
    EXPECT_TRUE(queue_->CopyHostToDevice(in[1], b.data(), b.size() * sizeof(T)).ok());
    const Status status = gpu::Enqueue(*machine_, *queue_, desc, args, Footprint());
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<T> result(size);
    EXPECT_TRUE(queue_->CopyDeviceToHost(result.data(), args.out[0], size * sizeof(T)).ok());
    queue_->Wait();
    EXPECT_TRUE(queue_->TakeStatus().ok());
    for (void* address : all) memory.Deallocate(address);
    return result;
  }

  // Runs it until all tiles were tried, and once more: the bits are those of the first run, which are returned.
  template <typename T, typename Desc>
  std::vector<T> TryAll(const Desc& desc, const std::vector<T>& a, const std::vector<T>& b, size_t size) {
    const size_t tiles = gpu::TilesFor(machine_->hardware(), desc.type, 1, 1, 1).size();
    const size_t kernels = FilesWith("ADD_PRODUCT").size(), notes = FilesWith("tiles of products").size();
    const std::vector<T> first = Run(desc, a, b, size);
    for (size_t run = 0; run < tiles * static_cast<size_t>(limits_.runs) + 1; ++run) {
      const std::vector<T> again = Run(desc, a, b, size);
      EXPECT_EQ(std::memcmp(first.data(), again.data(), size * sizeof(T)), 0) << "run " << run;
    }
    // Each was compiled, then: they are different kernels.
    EXPECT_EQ(FilesWith("ADD_PRODUCT").size(), kernels + tiles);
    EXPECT_EQ(FilesWith("tiles of products").size(), notes + 1);
    return first;
  }

  std::string cache_, before_;
  gpu::TileSearch::SearchLimits limits_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Queue> queue_;
};

template <typename T>
std::vector<T> Random(int64_t n) {
  static std::mt19937 random(1);
  std::vector<T> values(static_cast<size_t>(n));
  for (T& value : values) value = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
  return values;
}

MatMulDesc Product(DType type, int64_t m, int64_t n, int64_t k) {
  MatMulDesc desc;
  desc.type = type;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

// As the host computes it, in double.
template <typename T>
void ExpectProduct(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& c, size_t n, size_t k) {
  for (size_t i = 0; i < c.size(); ++i) {
    double sum = 0, of_magnitudes = 0;
    for (size_t l = 0; l < k; ++l) {
      const double x = static_cast<double>(a[i / n * k + l]) * static_cast<double>(b[l * n + i % n]);
      sum += x;
      of_magnitudes += std::fabs(x);
    }
    const double tolerance = static_cast<double>(k) * std::pow(2.0, sizeof(T) == 4 ? -24 : -52) * of_magnitudes;
    ASSERT_NEAR(static_cast<double>(c[i]), sum, tolerance) << "element " << i;
  }
}

// Some columns are in the last vector of one tile, which is loaded element by element, and not of another's.
TEST_F(Tiles, OfMatricesGiveTheSameBits) {
  const auto a = Random<float>(70 * 37), b = Random<float>(37 * 149);
  ExpectProduct(a, b, TryAll(Product(DType::kFloat, 70, 149, 37), a, b, 70 * 149), 149, 37);
  if (!machine_->hardware().has_double) return;
  const auto c = Random<double>(35 * 37), d = Random<double>(37 * 75);
  ExpectProduct(c, d, TryAll(Product(DType::kDouble, 35, 75, 37), c, d, 35 * 75), 75, 37);
}

// Whose padding is terms that are left out, or are 0.
TEST_F(Tiles, OfConvolutionsGiveTheSameBits) {
  ConvolutionDesc desc;
  desc.batch = 2;
  desc.in_channels = 12;
  desc.out_channels = 53;
  for (int d = 0; d < 2; ++d) {
    desc.input[d] = desc.output[d] = 7;
    desc.filter[d] = 3;
    desc.pad_before[d] = desc.pad_after[d] = 1;
  }
  const auto x = Random<float>(2 * 7 * 7 * 12), w = Random<float>(3 * 3 * 12 * 53), dy = Random<float>(2 * 7 * 7 * 53);
  TryAll(desc, x, w, dy.size());
  desc.direction = Direction::kFilterGradient;
  TryAll(desc, x, dy, w.size());
}

TEST_F(Tiles, AreChosenAsTheLastProcessFoundUnlessItsNoteIsDamaged) {
  const auto a = Random<float>(40 * 16), b = Random<float>(16 * 40);
  const MatMulDesc desc = Product(DType::kFloat, 40, 40, 16);
  EXPECT_EQ(machine_->tiles().Settled(), 0);
  TryAll(desc, a, b, 40 * 40);
  EXPECT_EQ(machine_->tiles().Settled(), 1);
  Begin();
  Run(desc, a, b, 40 * 40);
  EXPECT_EQ(machine_->tiles().Settled(), 1);
  const std::vector<std::string> notes = FilesWith("tiles of products");
  ASSERT_EQ(notes.size(), 1u);
  std::ofstream(notes[0], std::ios::binary) << ContentsOf(notes[0]).substr(0, 50);
  Begin();
  Run(desc, a, b, 40 * 40);
  EXPECT_EQ(machine_->tiles().Settled(), 0);
}

TEST_F(Tiles, AreNotTriedOnProductsThatAreFewOrSmall) {
  const auto a = Random<float>(40 * 16), b = Random<float>(16 * 40);
  limits_ = gpu::TileSearch::SearchLimits();
  for (const double least_work : {limits_.least_work, 0.0}) {
    limits_.least_work = least_work;
    machine_->tiles().SetLimits(limits_);
    for (int run = 0; run < limits_.patience; ++run) Run(Product(DType::kFloat, 40, 40, 16), a, b, 40 * 40);
    EXPECT_EQ(FilesWith("ADD_PRODUCT").size(), 1u);
  }
  Run(Product(DType::kFloat, 40, 40, 16), a, b, 40 * 40);
  Run(Product(DType::kFloat, 40, 40, 16), a, b, 40 * 40);
  EXPECT_EQ(FilesWith("ADD_PRODUCT").size(), 2u);
  EXPECT_EQ(machine_->tiles().Settled(), 0);
}

}  // namespace
}  // namespace xpu::opencl
