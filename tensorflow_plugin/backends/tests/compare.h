// Test support: runs one descriptor on two kernel sets over the same data and compares what they wrote.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_COMPARE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_COMPARE_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host/isa.h"
#include "tensorflow_plugin/backends/host/kernels.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::testing {

// A dense array of one type with guard bytes behind it, so that a write past the end is seen.
class Array {
 public:
  Array(DType type, int64_t n) : type_(type), n_(n), bytes_(n * SizeOf(type) + kGuard, uint8_t{0xa5}) {}
  DType type() const { return type_; }
  int64_t size() const { return n_; }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  template <typename T>
  T* as() {
    return static_cast<T*>(data());
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  bool GuardIntact() const {
    for (size_t i = n_ * SizeOf(type_); i < bytes_.size(); ++i) {
      if (bytes_[i] != 0xa5) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  DType type_;
  int64_t n_;
  std::vector<uint8_t> bytes_;
};

// Real part of element i as double (bool: 0 or 1), and imaginary part (0 for real types).
double RealAt(const Array& a, int64_t i);
double ImagAt(const Array& a, int64_t i);

// Values: floating and complex in [low, high), integers in the same range (unsigned: clamped at 0), bool both.
Array Random(DType type, int64_t n, uint32_t seed, double low = -4, double high = 4);
// Copies literal values into an array of `type`.
Array Values(DType type, std::initializer_list<double> values);

struct Tolerance {
  double relative = 0, absolute = 0;
};
// A few units in the last place of `type`, times `scale` (for long accumulations); exact for integers and bool.
Tolerance ToleranceFor(DType type, double scale = 1);

// Expects `got` to be `want` element by element (NaN equals NaN, infinities by sign) and its guard intact.
void ExpectClose(const Array& got, const Array& want, Tolerance tolerance, const std::string& what);

// Runs `desc` on the reference and on the host kernels, the latter with teams of 1 and 3 threads, with outputs
// allocated by the given types and sizes (started as copies of `initial` where given, for in-place primitives),
// and expects equal status codes and close outputs. Returns the reference's outputs.
template <typename Desc>
std::vector<Array> CompareBackends(const Desc& desc, const std::vector<Array>& inputs,
                                   const std::vector<std::pair<DType, int64_t>>& outputs, double scale,
                                   const std::string& what, const std::vector<Array>& initial = {}) {
  auto run = [&](const runtime::KernelSet& kernels, int threads, Status* status) {
    std::vector<Array> out;
    for (size_t i = 0; i < outputs.size(); ++i) {
      out.push_back(i < initial.size() ? initial[i] : Array(outputs[i].first, outputs[i].second));
    }
    Args args{};
    for (size_t i = 0; i < inputs.size(); ++i) args.in[i] = inputs[i].data();
    for (size_t i = 0; i < out.size(); ++i) args.out[i] = out[i].data();
    *status = kernels.Run(desc, args, runtime::ThreadTeam(threads));
    return out;
  };
  Status want_status;
  std::vector<Array> want = run(reference::Kernels(), 1, &want_status);
  for (int threads : {1, 3}) {
    Status got_status;
    std::vector<Array> got = run(host::Kernels(), threads, &got_status);
    EXPECT_EQ(got_status.code(), want_status.code()) << what << ": " << got_status.message();
    for (size_t i = 0; i < got.size(); ++i) {
      ExpectClose(got[i], want[i], ToleranceFor(got[i].type(), scale),
                  what + " output " + std::to_string(i) + " threads " + std::to_string(threads));
    }
  }
  return want;
}

// Calls f under every instruction set of this CPU.
template <typename F>
void ForEachIsa(F f) {
  for (host::Isa isa : {host::Isa::kBaseline, host::Isa::kAvx2, host::Isa::kAvx512}) {
    if (!host::HasIsa(isa)) continue;
    SCOPED_TRACE(host::Name(isa));
    host::ScopedIsa scoped(isa);
    f();
  }
}

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_COMPARE_H_
