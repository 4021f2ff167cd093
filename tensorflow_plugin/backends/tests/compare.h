// The parts of the tests of primitives. They are a descriptor with its inputs, the ways to run it on the device under
// test, and the expected result.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_COMPARE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_COMPARE_H_

#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/tests/array.h"
#include "tensorflow_plugin/backends/tests/device_under_test.h"
#include "tensorflow_plugin/backends/tests/rounding.h"

namespace xpu::testing {

// The case's name in the summary: the primitive, what distinguishes its kinds, and the type.
template <typename Desc>
std::string Label(const Desc& desc) {
  return Name(desc);
}
// Programs of several instructions are one case, and those of none are told apart by their type.
std::string Label(const ElementwiseDesc& desc);

// The result that a command should give.
struct Want {
  std::vector<Array> out;
  std::vector<Bound> bounds;  // of each output; those without one are exact
  Code code = Code::kOk;
  std::string message;  // part of the failure's; empty: any
};

// True if a run gave that; adds a failure for each difference.
bool Judge(const Outcome& outcome, const Want& want, const std::string& what);

template <typename Desc>
bool ExpectOn(TestDevice& device, Waiting waiting, const Desc& desc, const std::vector<Array>& inputs,
              const std::vector<Output>& outputs, const Want& want, const std::string& what) {
  return Judge(device.Run(desc, inputs, outputs, waiting), want, what);
}

// Runs a command in every variant and expects the same of each. A descriptor that the backend denies is counted, if it
// may deny it.
template <typename Desc>
void Expect(const Desc& desc, const std::vector<Array>& inputs, const std::vector<Output>& outputs, const Want& want,
            const std::string& what) {
  const std::string label = Label(desc);
  for (const Variant& variant : Variants()) {
    const UseVariant use(variant);
    const Outcome outcome = variant.device->Run(desc, inputs, outputs, variant.waiting);
    const bool denied = !outcome.launched && outcome.status.code() == Code::kUnimplemented;
    if (denied && want.code != Code::kUnimplemented && !MustSupportEverything()) {
      CountCase(label, CaseResult::kNotSupported);
      continue;
    }
    const bool right = Judge(outcome, want, what + " (" + label + ", " + variant.name + ")");
    CountCase(label, right ? CaseResult::kRight : CaseResult::kWrong);
  }
}

// The same for what is written by hand: of the reference, too.
template <typename Desc>
void ExpectByHand(const Desc& desc, const std::vector<Array>& inputs, const std::vector<Output>& outputs,
                  const Want& want, const std::string& what) {
  ExpectOn(Reference(), Waiting::kAwaited, desc, inputs, outputs, want, what + " (reference)");
  Expect(desc, inputs, outputs, want, what);
}

// The result of the reference for this very descriptor. It has to support it.
template <typename Desc>
Want AsTheReference(const Desc& desc, const std::vector<Array>& inputs, const std::vector<Output>& outputs) {
  Outcome outcome = Reference().Run(desc, inputs, outputs, Waiting::kAwaited);
  EXPECT_TRUE(outcome.launched) << Label(desc) << " on the reference: " << outcome.status.message();
  EXPECT_EQ(outcome.trespass, "") << Label(desc) << " on the reference";
  return {std::move(outcome.out), {}, outcome.status.code(), outcome.status.message()};
}

// Expects exactly what the reference gives: of what does not round, or rounds once.
template <typename Desc>
std::vector<Array> ExpectAsTheReference(const Desc& desc, const std::vector<Array>& inputs,
                                        const std::vector<Output>& outputs, const std::string& what) {
  const Want want = AsTheReference(desc, inputs, outputs);
  Expect(desc, inputs, outputs, want, what);
  return want.out;
}

// The outputs of a descriptor in the wider types on the widened inputs, by the reference.
std::vector<Output> WidenedOutputs(const std::vector<Output>& outputs);
std::vector<Array> WidenedInputs(const std::vector<Array>& inputs);
std::vector<Array> MagnitudesOf(const std::vector<Array>& inputs);

template <typename Desc>
std::vector<Array> Exact(const Desc& wide_desc, const std::vector<Array>& inputs, const std::vector<Output>& outputs) {
  return AsTheReference(wide_desc, WidenedInputs(inputs), WidenedOutputs(outputs)).out;
}

// The one output of a descriptor that is linear in each of its inputs, such as a product of matrices. Its elements are
// sums of `terms` products at most. The magnitudes of those are the result of the same descriptor for the inputs'
// magnitudes. `wide_desc` is the descriptor in the wider type. Types that do not round are exact.
template <typename Desc>
void ExpectSums(const Desc& desc, const Desc& wide_desc, const std::vector<Array>& inputs, const Output& output,
                double terms, const std::string& what) {
  const Array initial = output.initial == nullptr ? Array() : Widened(*output.initial);
  const Array zeros = Values(Wide(output.type), std::vector<double>(initial.size()));
  Output wide_output = {Wide(output.type), output.size, output.initial == nullptr ? nullptr : &initial};
  Want want{AsTheReference(wide_desc, WidenedInputs(inputs), {wide_output}).out};
  if (Roundoff(output.type) != 0) {
    if (output.initial != nullptr) wide_output.initial = &zeros;  // what stays has no error
    want.bounds = {SumBound(AsTheReference(wide_desc, MagnitudesOf(inputs), {wide_output}).out[0], terms, output.type)};
  }
  Expect(desc, inputs, {output}, want, what);
}

// The same for whole numbers, whose sums of magnitudes fit the type of the computation. Every partial sum is then a
// number of that type, whatever the order, and the only rounding is that of the stored result. The bound of a long sum
// grows with its length. From 11,000 terms on, in float, it lets through 5% of a thousandth of it, which a part may be.
// Here nothing is let through.
template <typename Desc>
void ExpectExactSums(const Desc& desc, const Desc& wide_desc, const std::vector<Array>& inputs, const Output& output,
                     const std::string& what) {
  const std::vector<Output> wide_output = {{Wide(output.type), output.size}};
  const Array magnitudes = AsTheReference(wide_desc, MagnitudesOf(inputs), wide_output).out[0];
  for (int64_t i = 0; i < magnitudes.size(); ++i) {
    ASSERT_LE(std::abs(At(magnitudes, i)) * Roundoff(output.type), 1) << what << " is no exact case: element " << i;
  }
  Expect(desc, inputs, {output}, {AsTheReference(wide_desc, WidenedInputs(inputs), wide_output).out}, what);
}

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_COMPARE_H_
