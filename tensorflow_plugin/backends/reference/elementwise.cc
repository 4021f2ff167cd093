#include <cstring>

#include "tensorflow_plugin/backends/plain/evaluator.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {

Status ReferenceKernels::Run(const ElementwiseDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  if (desc.shape.num_elements() == 0) return OkStatus();
  const Program& program = *desc.program;
  plain::Evaluator evaluator(desc, args);
  Dims index(desc.shape.rank(), 0);
  int64_t position = 0;
  do {
    evaluator.At(index.begin());
    for (int i = 0; i < program.num_outputs(); ++i) {
      const DType type = program.output_type(i);
      auto* element = static_cast<unsigned char*>(args.out[i]) + position * static_cast<int64_t>(SizeOf(type));
      if (plain::InstrFn store = plain::FindStore(type)) {
        store(element, evaluator.output(i).bytes, nullptr, nullptr, 1);
      } else {
        std::memcpy(element, evaluator.output(i).bytes, SizeOf(type));
      }
    }
    ++position;
  } while (plain::NextIndex(desc.shape, index.begin()));
  return evaluator.status();
}

}  // namespace xpu::reference
