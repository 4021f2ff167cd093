// What the checks of descriptors (check_*.cc) are written in.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_CHECKING_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_CHECKING_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensorflow_plugin/primitives/check.h"

namespace xpu::checking {

// An operand in the making: axis by axis, then an entry of the footprint. What is wrong on the way is told at the end.
class View {
 public:
  explicit View(const char* what) : what_(what) {}

  // Axes of a dense array.
  View& Dense(const int64_t* extents, int n) {
    for (int i = 0; i < n; ++i) {
      if (Extent(extents[i])) elements_.Times(extents[i]);
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
    if (stride != 0) elements_.Times(extent);
    Number reach(extent - 1);
    reach.Times(stride);
    (stride < 0 ? first_ : last_).Plus(reach);
    return *this;
  }
  View& Strided(const Dims& shape, const Dims& strides) {
    for (int i = 0; i < shape.rank(); ++i) Strided(shape[i], strides[i]);
    return *this;
  }
  View& Offset(int64_t elements) {
    first_.Plus(Number(elements));
    last_.Plus(Number(elements));
    return *this;
  }

  bool any() const { return !zero_; }

  Status As(DType type, Operand* operand) { return As(type, static_cast<int64_t>(SizeOf(type)), operand); }
  Status As(DType type, int64_t element_size, Operand* operand) {
    XPU_REQUIRE(negative_ == 0, errors::InvalidArgument(what_, ": an extent is ", negative_, ", expected 0 or more"));
    *operand = {type, element_size, 0, 0, 0};
    if (zero_) return OkStatus();
    if (dense_) {
      last_ = elements_;
    } else {
      last_.Plus(Number(1));
    }
    first_.Times(element_size);
    last_.Times(element_size);
    XPU_REQUIRE(!elements_.overflow && !first_.overflow && !last_.overflow,
                errors::InvalidArgument(what_, ": more elements or bytes than 64 bits count"));
    operand->elements = elements_.value;
    operand->begin = first_.value;
    operand->end = last_.value;
    return OkStatus();
  }

 private:
  struct Number {
    explicit Number(int64_t v) : value(v) {}
    void Times(int64_t v) { overflow |= __builtin_mul_overflow(value, v, &value); }
    void Plus(const Number& v) { overflow |= v.overflow | __builtin_add_overflow(value, v.value, &value); }
    int64_t value;
    bool overflow = false;
  };

  // Notes what is special about an extent; false if nothing more is to be made of it.
  bool Extent(int64_t extent) {
    if (extent < 0 && negative_ == 0) negative_ = extent;
    zero_ = zero_ || extent == 0;
    return extent > 0;
  }

  const char* const what_;
  Number elements_{1}, first_{0}, last_{0};
  int64_t negative_ = 0;
  bool zero_ = false, dense_ = false;
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
