// A program in two parts. The first one computes a single value for each element, and the second one all the rest.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_DIVIDE_PROGRAM_H_
#define TENSORFLOW_PLUGIN_COMMANDS_DIVIDE_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::commands {

// An input of a program, as the first part sees it.
enum class InputOfPart : uint8_t {
  kElement,  // the value that it begins with. All such inputs have the same one
  kAllowed,  // it may read it, too
  kForeign,  // it must not read it
};

struct DividedProgram {
  // A program, and the number that each of its inputs has in the whole one.
  struct Part {
    const Program* program = nullptr;
    std::vector<int> inputs;
  };
  // Input 0 of `first` is the element, and its one output the value. `rest` has all outputs of the whole program, and
  // the value for the first input that is an element.
  Part first, rest;
};

// Puts as many instructions into the first part as can be. False if there are none, or if the rest needs more than one
// of their values.
bool Divide(const Program& program, const std::vector<InputOfPart>& inputs, DividedProgram* divided);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_DIVIDE_PROGRAM_H_
