// Walks an elementwise program over its shape, one element at a time: what Elementwise and Reduce share.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_EVALUATOR_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_EVALUATOR_H_

#include <vector>

#include "tensorflow_plugin/backends/plain/instructions.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::plain {

class Evaluator {
 public:
  // Room for a register of any type.
  struct alignas(16) Value {
    unsigned char bytes[16];
  };

  Evaluator(const ElementwiseDesc& desc, const Args& args);

  // Computes the program's registers at one position of the shape (shape.rank() indices).
  void At(const int64_t* index);
  // After At: the register that holds output i.
  const Value& output(int i) const { return registers_[program_.outputs()[i]]; }
  // The first failure of any element so far.
  const Status& status() const { return status_; }

 private:
  const ElementwiseDesc& desc_;
  const Args& args_;
  const Program& program_;
  std::vector<Value> registers_;
  std::vector<InstrFn> instrs_;
  Status status_;
};

// Advances `index` over `shape` in row-major order; false (and all zeros) after the last position.
bool NextIndex(const Dims& shape, int64_t* index);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_EVALUATOR_H_
