// Random numbers of given parameters, whose number of draws depends on what was drawn.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_RANDOM_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_RANDOM_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::plain {

// The numbers [begin, end) of desc.n, counted distribution by distribution, of kGamma.
void Gamma(const RandomDesc& desc, const Args& args, int64_t begin, int64_t end);

// All numbers of kBoundedNormal; NaN if it fails.
Status BoundedNormal(const RandomDesc& desc, const Args& args);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_RANDOM_H_
