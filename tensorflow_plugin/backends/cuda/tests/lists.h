// Command lists for tests that run several commands.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_LISTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_LISTS_H_

#include <cstddef>
#include <memory>

#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::cuda {

// So many commands of two operands, which all read buffer 0 and write buffer 1.
template <typename Desc>
std::shared_ptr<CommandList> ListOf(size_t count, const Desc& desc) {
  auto list = std::make_shared<CommandList>();
  list->buffers.resize(2);
  for (Buffer& buffer : list->buffers) buffer.kind = Buffer::Kind::kInput;
  Command command;
  command.desc = desc;
  EXPECT_TRUE(Check(desc, &command.footprint).ok());
  command.in = {{0, 0}, {0, 0}};
  command.out = {{1, 0}};
  list->commands.assign(count, command);
  return list;
}

// Three sums of 16 numbers.
inline std::shared_ptr<CommandList> Sums() {
  ElementwiseDesc desc;
  desc.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
  desc.shape = {16};
  desc.in_strides[0] = desc.in_strides[1] = {1};
  return ListOf(3, desc);
}

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_LISTS_H_
