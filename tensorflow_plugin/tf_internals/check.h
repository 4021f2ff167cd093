// How a check looks at the running TensorFlow: it compares what it sees with what this library was compiled for.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_CHECK_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_CHECK_H_

#include <cstdint>
#include <string>
#include <type_traits>

namespace xpu::tf_internals {

class Check {
 public:
  static constexpr int kNoLie = 0;
  static constexpr int kAllLies = -1;

  // `lie`: the observation that is falsified, counted from 1. For tests: a check that does not notice is none.
  explicit Check(int lie = kNoLie) : lie_(lie) {}

  // True if TensorFlow has there what is expected. Where it does not, the rest of the check must not run.
  template <typename T, typename Expected>
  bool Is(const char* what, const T& seen, const Expected& expected) {
    ++observations_;
    const bool lied = lie_ == kAllLies || lie_ == observations_;
    if constexpr (std::is_convertible_v<T, std::string>) {
      return Compare(what, std::string(seen) + (lied ? "?" : ""), std::string(expected));
    } else if constexpr (std::is_same_v<T, bool>) {
      return Compare(what, seen != lied ? "yes" : "no", expected ? "yes" : "no");
    } else if constexpr (std::is_pointer_v<T>) {
      // Where the two lie says nothing to people.
      const bool same = static_cast<const void*>(seen) == static_cast<const void*>(expected);
      return Compare(what, same != lied ? "there" : "elsewhere", "there");
    } else {
      return Compare(what, std::to_string(static_cast<int64_t>(seen) + lied),
                     std::to_string(static_cast<int64_t>(expected)));
    }
  }

  // True if TensorFlow has done what it was asked for: `failure` is empty then.
  bool Works(const std::string& failure) {
    if (!why_.empty()) return false;
    ++observations_;
    const bool lied = lie_ == kAllLies || lie_ == observations_;
    if (failure.empty() && !lied) return true;
    if (why_.empty()) why_ = failure.empty() ? "it fails, as it was told to" : failure;
    return false;
  }

  // The first thing that was not as expected; empty if there is none.
  const std::string& why() const { return why_; }
  int observations() const { return observations_; }

 private:
  bool Compare(const char* what, const std::string& seen, const std::string& expected) {
    if (seen != expected && why_.empty()) why_ = std::string(what) + " is " + seen + ", not " + expected;
    return seen == expected;
  }

  const int lie_;
  int observations_ = 0;
  std::string why_;
};

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_CHECK_H_
