#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tensorflow_plugin/backends/cpu/kernels.h"

namespace xpu::cpu {
namespace {

// The same for equal numbers, which the two zeros are.
template <typename T>
uint64_t BitsOf(const T& x) {
  if constexpr (IsComplex(DTypeOf<T>::value)) {
    return BitsOf(x.real()) * 0x9e3779b97f4a7c15u ^ BitsOf(x.imag());
  } else {
    const auto number = static_cast<ComputeTypeT<T>>(x) + ComputeTypeT<T>{0};
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(number));
    return bits;
  }
}

// A table of row numbers, open to the next free place; a power of two of places, half of them free at least.
template <typename T>
class HashTable {
 public:
  HashTable(const T* x, int64_t inner, int64_t* firsts) : x_(x), inner_(inner), firsts_(firsts) { Resize(256); }

  // The number of row i, its own if no row before was equal.
  int64_t NumberOf(int64_t i) {
    const uint64_t hash = Hash(i);
    uint64_t at = hash >> shift_;
    for (; places_[at] >= 0; at = (at + 1) & (places_.size() - 1)) {
      if (Equal(firsts_[places_[at]], i)) return places_[at];
    }
    firsts_[count_] = i;
    places_[at] = count_;
    if (2 * ++count_ > static_cast<int64_t>(places_.size())) Resize(4 * places_.size());
    return count_ - 1;
  }

  int64_t count() const { return count_; }

 private:
  uint64_t Hash(int64_t i) const {
    const T* row = x_ + i * inner_;
    uint64_t hash = 0;
    for (int64_t j = 0; j < inner_; ++j) {
      hash = (hash ^ BitsOf(row[j])) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
    return hash * 0xd6e8feb86659fd93u;
  }
  bool Equal(int64_t i, int64_t j) const {
    using C = ComputeTypeT<T>;
    const T *a = x_ + i * inner_, *b = x_ + j * inner_;
    for (int64_t k = 0; k < inner_; ++k) {
      if (static_cast<C>(a[k]) != static_cast<C>(b[k])) return false;
    }
    return true;
  }
  void Resize(size_t size) {
    shift_ = 64 - __builtin_ctzll(size);
    places_.assign(size, -1);
    for (int64_t number = 0; number < count_; ++number) {
      uint64_t at = Hash(firsts_[number]) >> shift_;
      while (places_[at] >= 0) at = (at + 1) & (size - 1);
      places_[at] = number;
    }
  }

  const T* const x_;
  const int64_t inner_;
  int64_t* const firsts_;
  std::vector<int64_t> places_;
  int shift_ = 0;
  int64_t count_ = 0;
};

}  // namespace

Status CpuKernels::Run(const UniqueDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  VisitType(desc.type, [&](auto tag) {
    using Stored = typename decltype(tag)::type;
    using T = std::conditional_t<std::is_same_v<Stored, bool>, uint8_t, Stored>;
    int64_t* firsts = static_cast<int64_t*>(args.out[1]);
    HashTable<T> table(static_cast<const T*>(args.in[0]), desc.inner, firsts);
    VisitType(desc.index_type, [&](auto index_tag) {
      using I = typename decltype(index_tag)::type;
      if constexpr (IsSignedInteger(DTypeOf<I>::value)) {
        I* numbers = static_cast<I*>(args.out[0]);
        for (int64_t i = 0; i < desc.n; ++i) numbers[i] = static_cast<I>(table.NumberOf(i));
      }
    });
    std::fill(firsts + table.count(), firsts + desc.n, -1);
    *static_cast<int64_t*>(args.out[2]) = table.count();
  });
  return OkStatus();
}

}  // namespace xpu::cpu
