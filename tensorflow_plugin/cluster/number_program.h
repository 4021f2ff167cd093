// The counting of a loop as a program: arithmetic of single numbers in host memory, some nanoseconds for an operation.
// The members' own kernels take some hundred.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_NUMBER_PROGRAM_H_
#define TENSORFLOW_PLUGIN_CLUSTER_NUMBER_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/members.h"

namespace xpu::cluster {

union Number {
  bool b;
  int32_t i;
  int64_t l;
  float f;
  double d;
};

class NumberProgram {
 public:
  // `members` may run any number of times, on values in host memory alone. Their results are a condition, the next
  // values of `variables`, which are arguments, and other numbers. False if the program cannot compute that.
  bool Make(const Members& members, const std::vector<int>& variables);

  // The numbers of a loop at the beginning of an iteration.
  class Run {
   public:
    // Evaluates the members that depend on no variable, once, by their kernels. False if a value is no single number.
    bool Begin(const NumberProgram& program, tensorflow::OpKernelContext* ctx, Members::Environment arguments);
    // Computes the results; the value is the condition.
    bool Compute();
    // The next iteration, after Compute.
    void Next();
    // The variables first, in their order.
    const Number& operator[](int i) const { return numbers_[i]; }
    // A result behind those that are next values.
    const Number& Other(int i) const { return numbers_[program_->results_[1 + program_->variables_.size() + i]]; }
    tensorflow::DataType TypeOf(int variable) const { return types_[variable]; }

   private:
    const NumberProgram* program_ = nullptr;
    std::vector<Number> numbers_, next_;
    std::vector<tensorflow::DataType> types_;  // of variables
  };

 private:
  using Operation = void (*)(const Number& a, const Number& b, Number* result);
  struct Step {
    Operation operation;
    int a, b, result;
  };
  static Operation Find(const tensorflow::OpKernel& kernel);

  std::vector<int> variables_;
  Members invariants_;  // their results are numbers that follow the variables
  std::vector<Step> steps_;
  std::vector<int> results_;
  int size_ = 0;
};

// A scalar in host memory.
tensorflow::Tensor ToTensor(const Number& number, tensorflow::DataType dtype);
// An element of a tensor in host memory.
void Put(const Number& number, int64_t i, tensorflow::Tensor* tensor);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_NUMBER_PROGRAM_H_
