// How a check looks at the running TensorFlow: it compares what it sees with what this library was compiled for.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_CHECK_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_CHECK_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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
    if constexpr (std::is_convertible_v<T, std::string>) {
      return Compare(what, std::string(seen), std::string(seen) + "?", std::string(expected));
    } else if constexpr (std::is_same_v<T, bool>) {
      return Compare(what, seen ? "yes" : "no", seen ? "no" : "yes", expected ? "yes" : "no");
    } else if constexpr (std::is_pointer_v<T>) {
      // Where the two lie says nothing to people.
      const bool same = static_cast<const void*>(seen) == static_cast<const void*>(expected);
      return Compare(what, same ? "there" : "elsewhere", same ? "elsewhere" : "there", "there");
    } else {
      const int64_t number = static_cast<int64_t>(seen);
      return Compare(what, std::to_string(number), std::to_string(number + 1),
                     std::to_string(static_cast<int64_t>(expected)));
    }
  }

  // True if TensorFlow has done what it was asked for: `failure` is empty then.
  bool Works(const std::string& failure) {
    if (!why_.empty()) return false;
    constexpr char kLie[] = "it fails, as it was told to";
    if (!LiesNext(kLie) && failure.empty()) return true;
    why_ = failure.empty() ? kLie : failure;
    return false;
  }

  // The first thing that was not as expected; empty if there is none.
  const std::string& why() const { return why_; }
  // For each observation what `why` is if that one alone is falsified.
  const std::vector<std::string>& lies() const { return lies_; }
  int observations() const { return static_cast<int>(lies_.size()); }

 private:
  // Begins an observation. True if it is to be falsified.
  bool LiesNext(std::string words) {
    lies_.push_back(std::move(words));
    return lie_ == kAllLies || lie_ == observations();
  }

  bool Compare(const char* what, const std::string& seen, const std::string& falsified, const std::string& expected) {
    const auto words = [&](const std::string& found) {
      return std::string(what) + " is " + found + ", not " + expected;
    };
    const std::string& found = LiesNext(words(falsified)) ? falsified : seen;
    if (found != expected && why_.empty()) why_ = words(found);
    return found == expected;
  }

  const int lie_;
  std::vector<std::string> lies_;
  std::string why_;
};

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_CHECK_H_
