#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {

std::string Label(const ElementwiseDesc& desc) {
  const Program& program = *desc.program;
  if (program.instrs().size() == 1) return Name(desc);
  if (!program.instrs().empty()) return "Program";
  return errors::Concat(program.num_inputs() == 0 ? "Fill of " : "Copy of ", Name(program.output_type(0)));
}

bool Judge(const Outcome& outcome, const Want& want, const std::string& what) {
  bool right = true;
  if (outcome.status.code() != want.code) {
    ADD_FAILURE() << what << ": status " << static_cast<int>(outcome.status.code()) << " \"" << outcome.status.message()
                  << "\", expected " << static_cast<int>(want.code) << " \"" << want.message << "\"";
    right = false;
  } else if (outcome.status.message().find(want.message) == std::string::npos) {
    ADD_FAILURE() << what << ": the failure is \"" << outcome.status.message() << "\", expected \"" << want.message
                  << "\"";
    right = false;
  }
  if (!outcome.trespass.empty()) {
    ADD_FAILURE() << what << ": wrote beside its outputs: " << outcome.trespass;
    right = false;
  }
  if (outcome.out.size() != want.out.size()) {
    ADD_FAILURE() << what << ": " << outcome.out.size() << " outputs, expected " << want.out.size();
    return false;
  }
  static const Bound exact;
  for (size_t i = 0; i < want.out.size(); ++i) {
    const Bound& bound = i < want.bounds.size() ? want.bounds[i] : exact;
    right &= ExpectWithin(outcome.out[i], want.out[i], bound, what + ": output " + std::to_string(i));
  }
  return right;
}

std::vector<Output> WidenedOutputs(const std::vector<Output>& outputs) {
  std::vector<Output> wide = outputs;
  for (Output& output : wide) output.type = Wide(output.type);
  return wide;
}

std::vector<Array> WidenedInputs(const std::vector<Array>& inputs) {
  std::vector<Array> wide;
  for (const Array& input : inputs) wide.push_back(Widened(input));
  return wide;
}

std::vector<Array> MagnitudesOf(const std::vector<Array>& inputs) {
  std::vector<Array> magnitudes;
  for (const Array& input : inputs) {
    const bool is_data = Roundoff(input.type()) != 0;
    magnitudes.push_back(is_data ? Magnitudes(input) : input);
  }
  return magnitudes;
}

}  // namespace xpu::testing
