// Tensors in and out without Python, and a great many malformed ones.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow_plugin/interop/export.h"
#include "tensorflow_plugin/interop/import.h"
#include "tensorflow_plugin/interop/shapes.h"
#include "tensorflow_plugin/interop/types.h"
#include "tensorflow_plugin/tf_internals/holders.h"

namespace xpu::interop {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tf_internals::IsHeldBy;

// A foreign float tensor over memory of its own; counts the calls of its deleter.
struct Producer {
  explicit Producer(std::vector<int64_t> dims, std::vector<int64_t> steps = {})
      : shape(std::move(dims)), strides(std::move(steps)) {
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* m) { ++static_cast<Producer*>(m->manager_ctx)->deleted; };
    managed.dl_tensor = {data,
                         kHost,
                         static_cast<int32_t>(shape.size()),
                         {kDLFloat, 32, 1},
                         shape.data(),
                         strides.empty() ? nullptr : strides.data(),
                         0};
    std::iota(data, data + kCount, 0.0f);
  }
  static constexpr DLDevice kHost = {kDLCPU, 0};
  static constexpr int kCount = 256;
  alignas(64) float data[kCount];
  std::vector<int64_t> shape, strides;
  DLManagedTensorVersioned managed{};
  int deleted = 0;
};

const float* Floats(const Tensor& t) { return static_cast<const float*>(tensorflow::DMAHelper::base(&t)); }

TEST(Types, EveryOneComesBack) {
  int known = 0;
  for (int i = 0; i < 64; ++i) {
    const auto type = static_cast<tensorflow::DataType>(i);
    const DLDataType dl = ToDl(type);
    if (dl.bits == 0) continue;
    ++known;
    EXPECT_EQ(FromDl(dl), type);
    EXPECT_EQ(ElementBytes(type), (dl.bits + 7) / 8) << NameOf(dl);
    EXPECT_EQ(FromDl({dl.code, dl.bits, 2}), tensorflow::DT_INVALID);
  }
  EXPECT_EQ(known, 25);
  EXPECT_EQ(ToDl(tensorflow::DT_STRING).bits, 0);
  EXPECT_EQ(ToDl(static_cast<tensorflow::DataType>(-1)).bits, 0);
  EXPECT_EQ(NameOf(DLDataType{kDLFloat, 32, 4}), "float32x4");
  EXPECT_EQ(NameOf(DLDataType{99, 7, 1}), "type code 99 of 7 bits");
  EXPECT_EQ(NameOf(DLDevice{kDLTrn, 2}), "Trn:2");
}

class Shapes : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { UseShapeLayout(GetParam()); }
  void TearDown() override { UseShapeLayout(false); }
};
INSTANTIATE_TEST_SUITE_P(WithTheLayout, Shapes, testing::Bool());

TEST_P(Shapes, EqualOnesAreOne) {
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {}, {3}, {2, 3, 4}, {70000, 2}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6, 7}, {1 << 20, 1, 2, 3}, {0, 4}}) {
    TensorShape a, b;
    ASSERT_TRUE(TensorShape::BuildTensorShape(dims, &a).ok());
    // The same shape, made in another way, with leftovers in its unused dimensions.
    ASSERT_TRUE(TensorShape::BuildTensorShape(std::vector<int64_t>(6, 9), &b).ok());
    b.Clear();
    for (const int64_t dim : dims) b.AddDim(dim);
    const int64_t* const block = SharedShape(a);
    EXPECT_EQ(SharedShape(b), block);
    EXPECT_EQ(SharedShape(Tensor(tensorflow::DT_HALF, TensorShape({0})).shape()), SharedShape(TensorShape({0})));
    int64_t stride = 1;
    for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
      EXPECT_EQ(block[i], dims[i]);
      EXPECT_EQ(block[dims.size() + i], stride);
      stride *= std::max<int64_t>(1, dims[i]);
    }
  }
}

TEST(ShapeStore, IsBounded) {
  ShapeStore store(4096);
  int stored = 0;
  for (int i = 1; i <= 1000; ++i) {
    const TensorShape shape({i, 2});
    if (const int64_t* block = store.Find(shape)) {
      ++stored;
      EXPECT_EQ(block[0], i);
      EXPECT_EQ(store.Find(shape), block);
    }
  }
  EXPECT_EQ(stored, 4096 / 32);
}

TEST_P(Shapes, ThreadsAgree) {
  std::vector<std::vector<const int64_t*>> seen(4);
  std::vector<std::thread> threads;
  for (auto& blocks : seen) {
    threads.emplace_back([&blocks] {
      for (int i = 0; i < 2000; ++i) blocks.push_back(SharedShape(TensorShape({i + 7, 11})));
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& blocks : seen) EXPECT_EQ(blocks, seen[0]);
  EXPECT_EQ(seen[0][1999][0], 2006);
}

TEST_P(Shapes, BeyondTheLimitTheyLastForSomeCalls) {
  std::vector<const int64_t*> blocks;
  // Shapes of rank 200: a block has 3200 bytes, so some 1300 of them fill the store.
  std::vector<int64_t> dims(200, 1);
  for (int i = 1; i <= 3000; ++i) {
    dims[0] = i;
    TensorShape shape;
    ASSERT_TRUE(TensorShape::BuildTensorShape(dims, &shape).ok());
    blocks.push_back(SharedShape(shape));
    for (int back = 0; back < std::min(i, kRingSize); ++back) {
      if (blocks[i - 1 - back][0] != i - back) FAIL() << i << " " << back;
    }
  }
}

TEST(Export, KeepsTheMemoryAlive) {
  DLManagedTensorVersioned* managed = nullptr;
  {
    Tensor tensor(tensorflow::DT_FLOAT, TensorShape({5, 7}));
    for (int i = 0; i < 35; ++i) tensor.flat<float>()(i) = i;
    ASSERT_TRUE(Export(tensor, BufferOf(tensor), Producer::kHost, Access::kShared, &managed).ok());
    EXPECT_EQ(managed->dl_tensor.data, tensorflow::DMAHelper::base(&tensor));
    EXPECT_EQ(managed->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    Tensor other = tensor;
    tensor = Tensor();
    EXPECT_FALSE(other.RefCountIsOne());  // so nothing is written in place
  }
  for (int i = 0; i < 35; ++i) EXPECT_EQ(static_cast<float*>(managed->dl_tensor.data)[i], i);
  EXPECT_EQ(managed->dl_tensor.strides[0], 7);
  managed->deleter(managed);
}

TEST(Export, CountsWhoHoldsTheMemory) {
  Tensor tensor(tensorflow::DT_FLOAT, TensorShape({4, 16}));
  EXPECT_TRUE(IsHeldBy(1, tensor));
  {
    const Tensor other = tensor;
    EXPECT_FALSE(IsHeldBy(1, tensor));
    EXPECT_TRUE(IsHeldBy(2, tensor));
  }
  const Tensor slice = tensor.Slice(1, 2);
  EXPECT_FALSE(IsHeldBy(1, tensor));
  EXPECT_FALSE(IsHeldBy(1, slice));
  EXPECT_FALSE(IsHeldBy(100, slice));  // of a whole that others hold
  tensor = Tensor();
  EXPECT_TRUE(IsHeldBy(1, slice));
  EXPECT_TRUE(IsHeldBy(1, Tensor(tensorflow::DT_FLOAT, TensorShape({0, 3}))));
}

TEST(Export, ScalarsAreCopied) {
  Tensor scalar(1.5f);
  DLManagedTensor* managed = nullptr;
  ASSERT_TRUE(Export(scalar, BufferOf(scalar), Producer::kHost, Access::kShared, &managed).ok());
  EXPECT_NE(managed->dl_tensor.data, tensorflow::DMAHelper::base(&scalar));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(managed->dl_tensor.data) % 64, 0);
  DLTensor view;
  ASSERT_TRUE(View(scalar, Producer::kHost, &view).ok());
  *static_cast<float*>(managed->dl_tensor.data) = *static_cast<float*>(view.data) = 9;
  EXPECT_EQ(scalar.scalar<float>()(), 1.5f);
  managed->deleter(managed);
}

TEST(Export, ViewsOfScalarsAreApart) {
  const Tensor one(1.0f), two(2.0f);
  DLTensor first, second;
  ASSERT_TRUE(View(one, Producer::kHost, &first).ok());
  ASSERT_TRUE(View(two, Producer::kHost, &second).ok());
  EXPECT_EQ(*static_cast<float*>(first.data), 1.0f);
  EXPECT_EQ(*static_cast<float*>(second.data), 2.0f);
}

TEST(Export, OfNothingTheDataIsNull) {
  const Tensor part = Tensor(tensorflow::DT_FLOAT, {4, 2}).Slice(1, 1);  // of a buffer that has an address
  ASSERT_NE(tensorflow::DMAHelper::base(&part), nullptr);
  DLTensor view;
  ASSERT_TRUE(View(part, Producer::kHost, &view).ok());
  EXPECT_EQ(view.data, nullptr);
  DLManagedTensorVersioned* managed = nullptr;
  ASSERT_TRUE(Export(part, BufferOf(part), Producer::kHost, Access::kShared, &managed).ok());
  EXPECT_EQ(managed->dl_tensor.data, nullptr);
  managed->deleter(managed);
}

TEST(Export, FreshMemoryIsTheConsumers) {
  DLManagedTensorVersioned* managed = nullptr;
  ASSERT_TRUE(ExportFresh(tensorflow::DT_HALF, TensorShape({3, 5}), &managed).ok());
  EXPECT_EQ(managed->flags, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(managed->dl_tensor.data) % 64, 0);
  std::memset(managed->dl_tensor.data, 1, 30);
  EXPECT_EQ(managed->dl_tensor.shape[1], 5);
  EXPECT_EQ(managed->dl_tensor.strides[0], 5);
  managed->deleter(managed);
}

TEST(Export, RefusesWhatDLPackHasNot) {
  DLManagedTensor* legacy = nullptr;
  DLTensor view;
  const Tensor text(tensorflow::DT_STRING, TensorShape({2}));
  EXPECT_EQ(Export(text, BufferOf(text), Producer::kHost, Access::kShared, &legacy).message(),
            "DLPack has no type for tensors of string");
  EXPECT_FALSE(View(text, Producer::kHost, &view).ok());
  const Tensor nibbles(tensorflow::DT_INT4, TensorShape({2}));
  EXPECT_FALSE(Export(nibbles, BufferOf(nibbles), Producer::kHost, Access::kShared, &legacy).ok());
  EXPECT_FALSE(View(nibbles, Producer::kHost, &view).ok());
}

TEST(Import, SharesAndReleases) {
  Producer producer({4, 8});
  {
    Foreign foreign(&producer.managed);
    TensorLayout layout;
    ASSERT_TRUE(Examine(foreign, &layout).ok());
    ASSERT_TRUE(layout.shareable());
    bool settled = false;
    Tensor tensor = Share(std::move(foreign), layout, [&] {
      settled = true;
      EXPECT_EQ(producer.deleted, 0);
    });
    EXPECT_EQ(Floats(tensor), producer.data);
    EXPECT_FALSE(tensor.RefCountIsOne());  // never forwarded to an output
    const Tensor row = tensor.Slice(1, 2);
    tensor = Tensor();
    EXPECT_EQ(Floats(row)[0], 8);
    EXPECT_EQ(producer.deleted, 0);
    EXPECT_FALSE(settled);
  }
  EXPECT_EQ(producer.deleted, 1);
}

// Reads an element as the strides say.
TEST(Import, CopiesEveryLayout) {
  struct Case {
    std::vector<int64_t> shape, strides;
    int64_t first;
  };
  const Case cases[] = {
      {{4, 6}, {6, 1}, 1},
      {{4, 6}, {1, 4}, 0},
      {{4, 6}, {-6, -1}, 23},
      {{3, 5}, {0, 1}, 2},
      {{3, 5}, {0, 0}, 7},
      {{2, 3, 4}, {12, 4, 1}, 3},
      {{2, 3, 4}, {1, 2, 6}, 0},
      {{2, 3, 4}, {24, 8, 2}, 0},
      {{7}, {3}, 0},
      {{7}, {-3}, 30},
      {{1, 5, 1}, {99, 2, -5}, 0},
      {{2, 1, 3}, {3, 1000, 1}, 5},
      {{2, 2, 2, 2}, {8, 4, 2, 1}, 1},
      {{2, 0, 3}, {3, 3, 1}, 0},
      {{}, {}, 4},
  };
  for (const Case& c : cases) {
    Producer producer(c.shape, c.strides);
    producer.managed.dl_tensor.byte_offset = c.first * sizeof(float);
    Foreign foreign(&producer.managed);
    TensorLayout layout;
    ASSERT_TRUE(Examine(foreign, &layout).ok());
    Tensor copy;
    ASSERT_TRUE(CopyFrom(foreign, layout, &copy).ok());
    std::vector<int64_t> index(c.shape.size());
    for (int64_t i = 0; i < copy.NumElements(); ++i) {
      int64_t rest = i, at = c.first;
      for (int d = static_cast<int>(c.shape.size()) - 1; d >= 0; --d) {
        at += rest % c.shape[d] * c.strides[d];
        rest /= c.shape[d];
      }
      ASSERT_EQ(Floats(copy)[i], producer.data[at]) << i;
    }
  }
}

TEST(Import, UnpacksWhatSharesBytes) {
  Producer producer({5});
  producer.managed.dl_tensor.dtype = {kDLInt, 4, 1};
  const unsigned char packed[] = {0x21, 0xf8, 0x07};
  std::memcpy(producer.data, packed, sizeof packed);
  Foreign foreign(&producer.managed);
  TensorLayout layout;
  ASSERT_TRUE(Examine(foreign, &layout).ok());
  EXPECT_FALSE(layout.shareable());
  Tensor tensor;
  ASSERT_TRUE(CopyFrom(foreign, layout, &tensor).ok());
  const int expected[] = {1, 2, -8, -1, 7};
  // Sign-extended in its byte, for those who read bytes.
  const auto* bytes = static_cast<const int8_t*>(tensorflow::DMAHelper::base(&tensor));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(static_cast<int>(tensor.flat<tensorflow::int4>()(i)), expected[i]);
    EXPECT_EQ(bytes[i], expected[i]);
  }
}

TEST(Import, StridesOfAxesOfOneElementMeanNothing) {
  Producer producer({1, 5, 1}, {99, 1, -7});
  TensorLayout layout;
  ASSERT_TRUE(Examine(Foreign(&producer.managed), &layout).ok());
  EXPECT_TRUE(layout.shareable());
}

TEST(Import, StridesMayNotLeadOutsideTheAddressSpace) {
  const struct {
    uintptr_t data;
    int64_t stride;
    bool ok;
  } cases[] = {{256, -32, true}, {192, -32, false}, {UINTPTR_MAX - 319, 32, true}, {UINTPTR_MAX - 191, 32, false}};
  for (const auto& c : cases) {  // two steps of 128 bytes, and an element of 4; nothing there is read
    Producer producer({3}, {c.stride});
    producer.managed.dl_tensor.data = reinterpret_cast<void*>(c.data);
    TensorLayout layout;
    const Status status = Examine(Foreign(&producer.managed), &layout);
    EXPECT_EQ(status.ok(), c.ok) << c.data;
    if (!c.ok) EXPECT_EQ(status.message(), "the strides lead outside the address space");
  }
}

TEST(Import, OfAnotherMajorVersionOnlyTheDeleterIsTouched) {
  Producer producer({4});
  producer.managed.version = {2, 0};
  std::memset(static_cast<void*>(&producer.managed.flags), 0xff, sizeof(uint64_t) + sizeof(DLTensor));
  {
    const Foreign foreign(&producer.managed);
    TensorLayout layout;
    EXPECT_EQ(Examine(foreign, &layout).message(), "DLPack version 2.0 is not supported, expected 1.x");
  }
  EXPECT_EQ(producer.deleted, 1);
}

// Tensors whose every field may be nonsense: an error or a tensor that can be read, never a crash.
TEST(Import, Fuzz) {
  std::mt19937_64 random(20240229);
  const auto pick = [&](auto... choices) {
    const int64_t all[] = {static_cast<int64_t>(choices)...};
    return all[random() % std::size(all)];
  };
  int accepted = 0, refused = 0;
  for (int round = 0; round < 200000; ++round) {
    const int rank = static_cast<int>(random() % 5);
    std::vector<int64_t> shape(rank), strides(rank);
    for (int64_t& d : shape) d = pick(0, 1, 2, 3, 4, 2, 3, -1, INT64_MIN, INT64_MAX, 1ll << 31, 1ll << 40);
    for (int64_t& s : strides) s = pick(0, 1, 2, 3, 4, 8, INT64_MAX, INT64_MIN, -1, 1ll << 62, -(1ll << 61));
    Producer producer(shape, random() % 2 ? strides : std::vector<int64_t>());
    DLTensor& t = producer.managed.dl_tensor;
    if (random() % 8 == 0) t.dtype = {static_cast<uint8_t>(random() % 20), static_cast<uint8_t>(random() % 130), 1};
    if (random() % 4 == 0) t.dtype = {kDLInt, static_cast<uint8_t>(pick(2, 4, 8, 16)), 1};
    if (random() % 16 == 0) t.dtype.lanes = static_cast<uint16_t>(random());
    if (random() % 16 == 0) t.ndim = static_cast<int32_t>(pick(-1, INT32_MIN, INT32_MAX, 255));
    if (random() % 16 == 0) t.shape = nullptr;
    if (random() % 16 == 0) t.data = nullptr;
    if (random() % 16 == 0) t.byte_offset = static_cast<uint64_t>(pick(4, 64, -1, INT64_MAX));
    if (random() % 16 == 0) producer.managed.version.major = static_cast<uint32_t>(pick(0, 2, -1));
    if (random() % 16 == 0) producer.managed.flags = random();
    {
      Foreign foreign(&producer.managed);
      TensorLayout layout;
      const Status status = Examine(foreign, &layout);
      if (!status.ok()) {
        ++refused;
        ASSERT_FALSE(status.message().empty());
      } else {
        ++accepted;
        // Reads the elements where all of them lie in the producer's memory.
        int64_t low = t.byte_offset, high = t.byte_offset + ElementBytes(layout.type);
        const bool small = layout.bytes <= static_cast<int64_t>(sizeof producer.data);
        for (int i = 0; small && layout.bytes > 0 && t.strides != nullptr && i < t.ndim; ++i) {
          const int64_t reach = (t.shape[i] - 1) * t.strides[i] * ElementBytes(layout.type);
          (reach < 0 ? low : high) += reach;
        }
        if (t.strides == nullptr) high = t.byte_offset + layout.bytes;
        const int64_t size = sizeof producer.data;
        if (small && low >= 0 && high <= size && t.byte_offset <= 64) {
          Tensor copy;
          ASSERT_TRUE(CopyFrom(foreign, layout, &copy).ok());
          if (layout.shareable()) {
            const Tensor shared = Share(std::move(foreign), layout);
            ASSERT_EQ(shared.tensor_data(), copy.tensor_data());
          }
        }
      }
    }
    ASSERT_EQ(producer.deleted, 1);
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(ImportAndExport, ThreadsReleaseEachOthersTensors) {
  std::atomic<int> deleted{0};
  constexpr int kThreads = 4, kRounds = 500;
  std::vector<std::vector<DLManagedTensorVersioned*>> exported(kThreads);
  const auto each = [](auto f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, i);
    for (std::thread& t : threads) t.join();
  };
  std::vector<std::unique_ptr<Producer>> producers;
  for (int i = 0; i < kThreads * kRounds; ++i) {
    producers.push_back(std::make_unique<Producer>(std::vector<int64_t>{1 + i % 16, 16}));
    producers.back()->managed.manager_ctx = &deleted;
    producers.back()->managed.deleter = [](DLManagedTensorVersioned* m) {
      ++*static_cast<std::atomic<int>*>(m->manager_ctx);
    };
  }
  each([&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      Foreign foreign(&producers[thread * kRounds + i]->managed);
      TensorLayout layout;
      ASSERT_TRUE(Examine(foreign, &layout).ok());
      const Tensor tensor = Share(std::move(foreign), layout);
      DLManagedTensorVersioned* managed = nullptr;
      ASSERT_TRUE(Export(tensor, BufferOf(tensor), Producer::kHost, Access::kShared, &managed).ok());
      exported[thread].push_back(managed);
    }
  });
  EXPECT_EQ(deleted, 0);
  each([&](int thread) {
    for (DLManagedTensorVersioned* m : exported[(thread + 1) % kThreads]) m->deleter(m);
  });
  EXPECT_EQ(deleted, kThreads * kRounds);
}

}  // namespace
}  // namespace xpu::interop
