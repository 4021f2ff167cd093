// The common code of the tests of elementwise programs.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_ELEMENTWISE_TESTING_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_ELEMENTWISE_TESTING_H_

#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {

// Dense inputs of one length.
inline ElementwiseDesc Dense(const Program* program, int64_t n) {
  ElementwiseDesc desc;
  desc.program = program;
  desc.shape = {n};
  for (int i = 0; i < program->num_inputs(); ++i) desc.in_strides[i] = {1};
  return desc;
}

inline std::vector<Output> Outputs(const ElementwiseDesc& desc) {
  std::vector<Output> outputs;
  for (int i = 0; i < desc.program->num_outputs(); ++i) {
    outputs.push_back({desc.program->output_type(i), desc.shape.num_elements()});
  }
  return outputs;
}

// The expected results of a program whose instructions are exact, or round once and correctly.
inline std::vector<Array> ExpectAsTheReference(const ElementwiseDesc& desc, const std::vector<Array>& inputs,
                                               const std::string& what) {
  return ExpectAsTheReference(desc, inputs, Outputs(desc), what);
}

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_ELEMENTWISE_TESTING_H_
