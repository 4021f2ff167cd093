// SmallVector: a vector of plain values, of which the first few need no memory of their own. Copied by its size only.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_SMALL_VECTOR_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_SMALL_VECTOR_H_

#include <cstring>
#include <type_traits>

namespace xpu {

// Descriptors have dozens of these, of which most are empty: one is made by writing its size.
template <typename T, int kInline>
class SmallVector {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

  SmallVector() : size_(0) {}
  SmallVector(const SmallVector& o) : size_(o.size_) {
    if (__builtin_expect(!is_inline(), 0)) place_.elsewhere = NewPlace(size_);
    Copy(o.begin(), size_, begin());
  }
  SmallVector(SmallVector&& o) noexcept : size_(0) { Take(o); }
  ~SmallVector() { Free(); }
  SmallVector& operator=(const SmallVector& o) {
    if (__builtin_expect(is_inline() && o.is_inline(), 1)) {
      size_ = o.size_;
      std::memmove(static_cast<void*>(place_.here), o.place_.here, sizeof(T) * static_cast<size_t>(size_));
    } else if (this != &o) {
      Assign(o);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this == &o) return *this;
    Free();
    size_ = 0;
    Take(o);
    return *this;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](int i) const { return begin()[i]; }
  T& operator[](int i) { return begin()[i]; }
  const T* begin() const { return __builtin_expect(is_inline(), 1) ? place_.here : place_.elsewhere; }
  const T* end() const { return begin() + size_; }
  T* begin() { return __builtin_expect(is_inline(), 1) ? place_.here : place_.elsewhere; }
  T* end() { return begin() + size_; }

  void push_back(T value) { resize(size_ + 1, value); }
  void resize(int size, T fill = T()) {
    const int before = size_;
    if (__builtin_expect(size > kInline || !is_inline(), 0)) {
      MoveTo(size);
    } else {
      size_ = size;
    }
    for (int i = before; i < size; ++i) begin()[i] = fill;
  }

 private:
  bool is_inline() const { return size_ <= kInline; }

  // So many elements have a place elsewhere for so many: the next power of two.
  static int RoomFor(int size) {
    int room = 2;
    while (room < size) room *= 2;
    return room;
  }
  static T* NewPlace(int size) { return new T[static_cast<size_t>(RoomFor(size))]; }
  static void Copy(const T* from, int size, T* to) {
    std::memcpy(static_cast<void*>(to), from, sizeof(T) * static_cast<size_t>(size));
  }

  // Changes the size; the elements that stay go to where those of the new size are.
  [[gnu::cold, gnu::noinline]] void MoveTo(int size) {
    const int stay = size < size_ ? size : size_;
    if (size > kInline && !is_inline() && RoomFor(size) == RoomFor(size_)) {
      size_ = size;
    } else if (size > kInline) {
      T* const place = NewPlace(size);
      Copy(begin(), stay, place);
      Free();
      size_ = size;
      place_.elsewhere = place;
    } else {
      T* const place = place_.elsewhere;
      size_ = size;
      Copy(place, stay, place_.here);
      delete[] place;
    }
  }
  [[gnu::cold, gnu::noinline]] void Assign(const SmallVector& o) {
    Free();
    size_ = 0;
    if (!o.is_inline()) place_.elsewhere = NewPlace(o.size_);
    size_ = o.size_;
    Copy(o.begin(), size_, begin());
  }
  // This one has no place elsewhere. The other one is left empty if it had one.
  void Take(SmallVector& o) {
    size_ = o.size_;
    if (__builtin_expect(is_inline(), 1)) {
      Copy(o.place_.here, size_, place_.here);
    } else {
      place_.elsewhere = o.place_.elsewhere;
      o.size_ = 0;
    }
  }
  void Free() {
    if (__builtin_expect(!is_inline(), 0)) delete[] place_.elsewhere;
  }

  int size_;
  union Place {
    Place() {}
    T here[kInline];
    T* elsewhere;
  } place_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_SMALL_VECTOR_H_
