// Datasets and iterators on the device: what tf.data.experimental.prefetch_to_device and copy_to_device and the
// iterators of tf.distribute consist of. Their kernels move references to tensors about and never look into them. The
// RemoteCall inside, which TensorFlow has for every device, copies elements to the device.
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {

void RegisterIterators(Registry& registry) {
  registry.Adopt({
      // Datasets that may be on a device.
      "ExperimentalMapDataset",
      "ExperimentalSleepDataset",
      "FinalizeDataset",
      "GeneratorDataset",
      "GetOptions",
      "OptionsDataset",
      "PrefetchDataset",
      "SleepDataset",
      "UnwrapDatasetVariant",
      "WrapDatasetVariant",
      // Iterators over them.
      "AnonymousIterator",
      "AnonymousIteratorV2",
      "AnonymousIteratorV3",
      "DeleteIterator",
      "IteratorFromStringHandleV2",
      "IteratorGetNext",
      "IteratorGetNextAsOptional",
      "IteratorGetNextSync",
      "IteratorToStringHandle",
      "IteratorV2",
      "MakeIterator",
      // An element that may be missing.
      "OptionalFromValue",
      "OptionalGetValue",
      "OptionalHasValue",
      "OptionalNone",
      // Elements that travel as variants, all in host memory.
      "DeserializeSparse",
      "RaggedTensorFromVariant",
  });
}

}  // namespace xpu
