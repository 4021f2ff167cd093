// The outputs of a command, and results that are wrong on purpose.
#ifndef TENSORFLOW_PLUGIN_FAULTS_OUTPUTS_H_
#define TENSORFLOW_PLUGIN_FAULTS_OUTPUTS_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/faults/rules.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

// The output of a command at one address of Args::out.
struct Output {
  DType type = DType::kInvalid;  // kInvalid where only the size of elements matters
  int64_t element_size = 0;      // in bytes
  int64_t elements = 0;
  // Bytes from the address, outside which nothing is written.
  int64_t begin = 0, end = 0;
  // The place of each element, in bytes from the address; empty where they fill all from begin to end.
  std::vector<int64_t> offsets;

  int64_t offset(int64_t i) const { return offsets.empty() ? begin + i * element_size : offsets[i]; }
};

// The output of a fill.
Output OutputOf(size_t size);
// The outputs of the commands that `footprint` and its descriptor describe. The gaps of a view are left alone, except
// between the rows of a matrix.
std::vector<Output> OutputsOf(const Footprint& footprint);
std::vector<Output> OutputsOf(const Footprint& footprint, const CopyStridedDesc& desc);
template <typename Desc>
std::vector<Output> OutputsOf(const Footprint& footprint, const Desc&) {
  return OutputsOf(footprint);
}

// Alters a result of kScale or kOne in host memory, where `bytes` holds those from output.begin to output.end.
void Alter(FaultRule::Result result, const Output& output, char* bytes);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FAULTS_OUTPUTS_H_
