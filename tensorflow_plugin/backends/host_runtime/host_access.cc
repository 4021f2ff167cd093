#include "tensorflow_plugin/backends/host_runtime/host_access.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace xpu::host_runtime {
namespace {

constexpr size_t kMaxRanges = 256;
std::array<std::atomic<const IsolatedRange*>, kMaxRanges> all_ranges;
struct sigaction previous_action;

// Text in a fixed buffer: a signal handler has no heap and no stdio. Text that does not fit is cut off.
class SignalSafeText {
 public:
  SignalSafeText& operator<<(const char* text) {
    const size_t n = std::min(std::strlen(text), sizeof(text_) - used_);
    std::memcpy(text_ + used_, text, n);
    used_ += n;
    return *this;
  }
  SignalSafeText& operator<<(uint64_t number) { return Number(number, 10); }
  SignalSafeText& Hex(uintptr_t number) {
    *this << "0x";
    return Number(number, 16);
  }
  void Write() const {
    for (size_t done = 0; done < used_;) {
      const ssize_t n = write(STDERR_FILENO, text_ + done, used_ - done);
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  }

 private:
  SignalSafeText& Number(uint64_t number, unsigned base) {
    char digits[24];
    char* p = digits + sizeof(digits);
    *--p = 0;
    do {
      *--p = "0123456789abcdef"[number % base];
    } while ((number /= base) != 0);
    return *this << p;
  }

  char text_[1024];
  size_t used_ = 0;
};

const char* VerbOf(const void* context) {
#if defined(__x86_64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2 ? "wrote to" : "read";
#else
  (void)context;
  return "touched";
#endif
}

// Does what would have happened without this handler.
void PassOn(int signal, siginfo_t* info, void* context) {
  if (previous_action.sa_flags & SA_SIGINFO) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    const bool sent = info->si_code <= 0;  // by a process; else an instruction faulted, and will again
    if (sent && previous_action.sa_handler == SIG_IGN) return;
    sigaction(signal, &previous_action, nullptr);
    if (sent) raise(signal);
  }
}

void OnSegmentationFault(int signal, siginfo_t* info, void* context) {
  if (info->si_code > 0) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
    for (const auto& entry : all_ranges) {
      const IsolatedRange* const range = entry.load(std::memory_order_acquire);
      if (range != nullptr && range->Report(address, VerbOf(context))) break;
    }
  }
  PassOn(signal, info, context);
}

void InstallHandler() {
  struct sigaction action{};
  action.sa_sigaction = OnSegmentationFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_action);
}

}  // namespace

IsolatedRange::IsolatedRange(std::string device, uintptr_t begin, size_t size, bool pooled)
    : device_(std::move(device)), begin_(begin), size_(size), pooled_(pooled), slots_(new HandlerSlot[kSlots]) {
  static std::once_flag once;
  std::call_once(once, InstallHandler);
  for (auto& entry : all_ranges) {
    const IsolatedRange* none = nullptr;
    if (entry.compare_exchange_strong(none, this)) break;
  }
}

IsolatedRange::~IsolatedRange() {
  for (auto& entry : all_ranges) {
    const IsolatedRange* self = this;
    if (entry.compare_exchange_strong(self, nullptr)) break;
  }
}

void IsolatedRange::Add(const void* address, size_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t slot = used_slots_.load(std::memory_order_relaxed);
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (slot < kSlots) {
    used_slots_.store(slot + 1, std::memory_order_release);
  } else {
    return;
  }
  slots_[slot].size.store(size, std::memory_order_relaxed);
  slots_[slot].begin.store(reinterpret_cast<uintptr_t>(address), std::memory_order_release);
  slot_of_[reinterpret_cast<uintptr_t>(address)] = slot;
}

void IsolatedRange::Remove(const void* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = slot_of_.find(reinterpret_cast<uintptr_t>(address));
  if (found == slot_of_.end()) return;
  slots_[found->second].begin.store(0, std::memory_order_relaxed);
  free_slots_.push_back(found->second);
  slot_of_.erase(found);
}

bool IsolatedRange::Report(uintptr_t address, const char* verb) const {
  if (address - begin_ >= size_) return false;
  // The allocation that holds the address, or else the last one before it.
  uintptr_t begin = 0;
  size_t size = 0;
  const size_t used = used_slots_.load(std::memory_order_acquire);
  for (size_t i = 0; i < used; ++i) {
    const uintptr_t b = slots_[i].begin.load(std::memory_order_acquire);
    if (b == 0 || b > address || b < begin) continue;
    begin = b;
    size = slots_[i].size.load(std::memory_order_relaxed);
  }
  SignalSafeText line;
  line << "E XPU: the host " << verb << " address ";
  line.Hex(address) << " in the memory of device " << device_.c_str()
                    << ", which TF_XPU_ISOLATE_MEMORY=1 keeps from it.\nE XPU: ";
  if (begin == 0) {
    line << "No allocation is or begins before that address.";
  } else {
    const bool inside = address - begin < size;
    line << (inside ? "It is byte " : "No allocation is there (any more); it is byte ") << uint64_t{address - begin}
         << (inside ? " of" : " from the begin of") << " the allocation of " << uint64_t{size} << " bytes at ";
    line.Hex(begin) << (pooled_ ? ", a tensor."
                                : ", in which TensorFlow's allocator places tensors (TF_XPU_ALLOCATOR=pool allocates "
                                  "each by itself).");
  }
  line
      << "\nE XPU: What needs the data on the host must copy it: tensor.numpy(), tf.identity on the CPU, or a kernel's "
         "argument in host memory. python -X faulthandler shows where the access is.\n";
  line.Write();
  return true;
}

}  // namespace xpu::host_runtime
