// Says whether a core fits a TensorFlow of its minor version that it was not compiled with. The list of headers that it
// was compiled with is from tools/abi.py.
#ifndef TENSORFLOW_PLUGIN_LOADER_ABI_H_
#define TENSORFLOW_PLUGIN_LOADER_ABI_H_

#include <string>

namespace xpu::loader {

// The version of TensorFlow that the core at this path was compiled with, as TF_Version() writes it. Empty if the file
// beside the core does not say.
std::string BuiltFor(const std::string& core);

// The first header of that TensorFlow which the one in the folder `tensorflow` lacks, or has otherwise. Empty if it has
// them all.
std::string DifferingHeader(const std::string& core, const std::string& tensorflow);

// "2.22.0-rc0", "2.22.0-dev20260905": versions whose classes may still change.
bool IsPrerelease(const std::string& version);

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_ABI_H_
