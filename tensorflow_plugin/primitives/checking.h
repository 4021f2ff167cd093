// The tools with which the checks of descriptors (check_*.cc) are written.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_CHECKING_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_CHECKING_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensorflow_plugin/primitives/check.h"

namespace xpu::checking {

// An operand in the making: axis by axis, then an entry of the footprint. A mistake on the way is told at the end, out
// of line. Every command comes through here, and some take no longer than a few of these lines.
class View {
 public:
  explicit View(const char* what) : what_(what) {}

  // Axes of a dense array.
  View& Dense(const int64_t* extents, int n) {
    for (int i = 0; i < n; ++i) {
      if (Extent(extents[i])) Times(&elements_, extents[i]);
    }
    dense_ = true;
    return *this;
  }
  View& Dense(std::initializer_list<int64_t> extents) {
    return Dense(extents.begin(), static_cast<int>(extents.size()));
  }
  View& Dense(const Dims& dims) { return Dense(dims.begin(), dims.rank()); }

  // Axes with strides of their own; not together with Dense.
  View& Strided(int64_t extent, int64_t stride) {
    if (!Extent(extent)) return *this;
    if (stride != 0) Times(&elements_, extent);
    int64_t reach = extent - 1;
    Times(&reach, stride);
    Plus(stride < 0 ? &first_ : &last_, reach);
    return *this;
  }
  View& Strided(const Dims& shape, const Dims& strides) {
    for (int i = 0; i < shape.rank(); ++i) Strided(shape[i], strides[i]);
    return *this;
  }
  View& Offset(int64_t elements) {
    Plus(&first_, elements);
    Plus(&last_, elements);
    return *this;
  }

  bool any() const { return !zero_; }

  Status As(DType type, Operand* operand) { return As(type, static_cast<int64_t>(SizeOf(type)), operand); }
  Status As(DType type, int64_t element_size, Operand* operand) {
    if (__builtin_expect(negative_ != 0, 0)) return Refusal();
    *operand = {type, element_size, 0, 0, 0};
    if (zero_) return OkStatus();
    if (dense_) {
      last_ = elements_;
    } else {
      Plus(&last_, 1);
    }
    Times(&first_, element_size);
    Times(&last_, element_size);
    if (__builtin_expect(overflow_, 0)) return Refusal();
    operand->elements = elements_;
    operand->begin = first_;
    operand->end = last_;
    return OkStatus();
  }

 private:
  void Times(int64_t* number, int64_t v) { overflow_ |= __builtin_mul_overflow(*number, v, number); }
  void Plus(int64_t* number, int64_t v) { overflow_ |= __builtin_add_overflow(*number, v, number); }

  // Notes what is special about an extent; false if nothing more is to be made of it.
  bool Extent(int64_t extent) {
    if (__builtin_expect(extent > 0, 1)) return true;
    if (extent < 0 && negative_ == 0) negative_ = extent;
    zero_ = zero_ || extent == 0;
    return false;
  }

  [[gnu::cold, gnu::noinline]] Status Refusal() const {
    if (negative_ != 0) {
      return errors::InvalidArgument(what_, ": an extent is ", negative_, ", expected 0 or more");
    }
    return errors::InvalidArgument(what_, ": more elements or bytes than 64 bits count");
  }

  const char* const what_;
  int64_t elements_ = 1, first_ = 0, last_ = 0;
  int64_t negative_ = 0;
  bool zero_ = false, dense_ = false, overflow_ = false;
};

inline Operand* NextIn(Footprint* f) { return &f->in[f->num_in++]; }
inline Operand* NextOut(Footprint* f) { return &f->out[f->num_out++]; }

// An array of no element and no type that matters.
inline Status Nothing(DType type, Operand* operand) { return View("").Dense({0}).As(type, operand); }

inline Status RequireRank(const char* what, const Dims& strides, const Dims& shape) {
  XPU_REQUIRE(strides.rank() == shape.rank(), errors::InvalidArgument(what, " ", strides.ToString(), " for the shape ",
                                                                      shape.ToString(), ": the ranks differ"));
  return OkStatus();
}

inline Status RequireType(const char* what, DType type) {
  XPU_REQUIRE(SizeOf(type) != 0, errors::InvalidArgument(what, ": the type is not set"));
  return OkStatus();
}

inline Status RequireAtLeast(int64_t least, const char* what, const int64_t* values, int n) {
  for (int i = 0; i < n; ++i) {
    XPU_REQUIRE(values[i] >= least, errors::InvalidArgument(what, " is ", values[i], ", expected ", least, " or more"));
  }
  return OkStatus();
}

template <typename Desc>
Status RequireDefined(const Desc& desc) {
  XPU_REQUIRE(IsDefined(desc), errors::Unimplemented(Name(desc), " is not defined"));
  return OkStatus();
}

template <typename Kind, size_t n>
const char* NameOf(const char* const (&names)[n], Kind kind) {
  return static_cast<size_t>(kind) < n ? names[static_cast<size_t>(kind)] : "of unknown kind";
}

inline std::string OfSize(const char* what, size_t element_size) {
  return errors::Concat(what, " of elements of ", element_size, " bytes");
}

}  // namespace xpu::checking

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_CHECKING_H_
