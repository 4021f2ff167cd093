// Temporary memory of the calling thread, kept between calls so that a kernel that needs some allocates nothing.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SCRATCH_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SCRATCH_H_

#include <cstddef>
#include <cstdint>

namespace xpu::cpu {

// Hands out 64-byte aligned memory that is valid until the frame ends. Frames of one thread nest like its calls.
class ScratchFrame {
 public:
  ScratchFrame();
  ~ScratchFrame();
  ScratchFrame(const ScratchFrame&) = delete;
  ScratchFrame& operator=(const ScratchFrame&) = delete;

  // Throws std::bad_alloc.
  void* Bytes(size_t size);
  template <typename T>
  T* Get(int64_t n) {
    return static_cast<T*>(Bytes(static_cast<size_t>(n) * sizeof(T)));
  }

 private:
  size_t chunk_, used_;  // where the thread's arena stood when the frame began
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SCRATCH_H_
