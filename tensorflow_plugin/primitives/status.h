// A status: OK costs one null pointer. Codes have the numbers of TF_Code, so that the glue converts by cast.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_STATUS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_STATUS_H_

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace xpu {

enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : rep_(code == Code::kOk ? nullptr : new Rep{code, std::move(message)}) {}
  Status(const Status& o) : rep_(o.rep_ ? new Rep(*o.rep_) : nullptr) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& o) {
    rep_.reset(o.rep_ ? new Rep(*o.rep_) : nullptr);
    return *this;
  }
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  const std::string& message() const {
    static const std::string empty;
    return rep_ ? rep_->message : empty;
  }

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status OkStatus() { return Status(); }

namespace errors {
// As a stream would write it. Names of commands are made so while a profiler listens: what they consist of is appended
// without a stream, which takes 300 ns to make.
template <typename T>
void AppendTo(std::string& text, const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    text += std::string_view(value);
  } else if constexpr (std::is_same_v<T, char>) {
    text += value;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {
    text += std::to_string(value);
  } else {
    std::ostringstream out;
    out << value;
    text += out.str();
  }
}
template <typename... Args>
std::string Concat(const Args&... args) {
  std::string text;
  (AppendTo(text, args), ...);
  return text;
}
#define XPU_ERROR(Name)                            \
  template <typename... Args>                      \
  Status Name(const Args&... args) {               \
    return Status(Code::k##Name, Concat(args...)); \
  }
XPU_ERROR(InvalidArgument)
XPU_ERROR(NotFound)
XPU_ERROR(ResourceExhausted)
XPU_ERROR(FailedPrecondition)
XPU_ERROR(OutOfRange)
XPU_ERROR(Unimplemented)
XPU_ERROR(Internal)
#undef XPU_ERROR
}  // namespace errors

#define XPU_CONCAT_INNER(a, b) a##b
#define XPU_CONCAT(a, b) XPU_CONCAT_INNER(a, b)

#define XPU_RETURN_IF_ERROR(expr)                                   \
  do {                                                              \
    ::xpu::Status xpu_status_ = (expr);                             \
    if (__builtin_expect(!xpu_status_.ok(), 0)) return xpu_status_; \
  } while (0)

// XPU_REQUIRE(condition, errors::InvalidArgument("...")): returns the status unless the condition holds.
#define XPU_REQUIRE(condition, status)                      \
  do {                                                      \
    if (__builtin_expect(!(condition), 0)) return (status); \
  } while (0)

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_STATUS_H_
