// The traits of ops whose kernels are all TensorFlow's own.
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu {

const std::vector<TensorflowOps>& TableOfTensorflowOps() {
  using T = OpTrait;
  static const auto* const table = new std::vector<TensorflowOps>{
      // Values that are passed on.
      {T::kPassesOn | T::kServesDirectCalls | T::kCounts, {"Identity"}},
      {T::kPassesOn | T::kServesDirectCalls, {"NoOp"}},
      {T::kPassesOn, {"EnsureShape", "IdentityN", "PreventGradient", "Reshape", "Squeeze", "StopGradient"}},
      {T::kPassesOn | T::kCounts, {"ExpandDims"}},
      {T::kServesDirectCalls | T::kCounts, {"Const"}},
      {T::kGivesShapes | T::kServesDirectCalls, {"Rank", "Shape", "ShapeN", "Size"}},

      // Variables.
      {T::kCannotWait | T::kPassesOn | T::kOnlyReads | T::kKeepsNothing, {"ReadVariableOp"}},
      {T::kCannotWait | T::kPassesOn | T::kKeepsNothing, {"AssignVariableOp"}},
      {T::kCannotWait | T::kGivesShapes | T::kOnlyReads, {"VariableShape"}},
      {T::kCannotWait | T::kKeepsNothing, {"VarHandleOp", "VarIsInitializedOp"}},
      {T::kCannotWait,
       {"AssignVariableXlaConcatND", "DestroyResourceOp", "DisableCopyOnRead", "_ReadVariablesOp", "_VarHandlesOp"}},

      // A function's arguments and results are there when it starts and ends.
      {T::kCannotWait, {"_Arg", "_DeviceArg", "_DeviceRetval", "_Retval"}},

      // Random numbers.
      {T::kCannotWait,
       {"AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler",
        "LogUniformCandidateSampler", "NonDeterministicInts", "RandomCrop", "RandomDataset", "RandomDatasetV2",
        "RandomPoisson", "RandomPoissonV2", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2",
        "StatefulStandardNormal", "ThreadUnsafeUnigramCandidateSampler", "UniformCandidateSampler"}},

      // Queues, until somebody takes from them.
      {T::kCannotWait, {"RandomShuffleQueue", "RandomShuffleQueueV2"}},

      // Containers that fail where they lack something.
      {T::kCannotWait,
       {"AnonymousHashTable",
        "AnonymousMutableDenseHashTable",
        "AnonymousMutableHashTable",
        "AnonymousMutableHashTableOfTensors",
        "HashTable",
        "HashTableV2",
        "LookupTableExport",
        "LookupTableExportV2",
        "LookupTableFind",
        "LookupTableFindV2",
        "LookupTableImport",
        "LookupTableImportV2",
        "LookupTableInsert",
        "LookupTableInsertV2",
        "LookupTableRemoveV2",
        "LookupTableSize",
        "LookupTableSizeV2",
        "MutableDenseHashTable",
        "MutableDenseHashTableV2",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "MutableHashTableOfTensorsV2",
        "MutableHashTableV2",
        "Stack",
        "StackClose",
        "StackCloseV2",
        "StackPop",
        "StackPopV2",
        "StackPush",
        "StackPushV2",
        "StackV2"}},

      // Assertions, messages, files and clocks.
      {T::kCannotWait,
       {"Assert", "Print", "PrintV2", "Timestamp", "WriteAudioSummary", "WriteFile", "WriteGraphSummary",
        "WriteHistogramSummary", "WriteImageSummary", "WriteRawProtoSummary", "WriteScalarSummary", "WriteSummary"}},

      // Python runs, or a batch is filled.
      {T::kMayWait, {"Batch", "BatchFunction", "PyFuncStateless", "Unbatch", "UnbatchGrad"}},

      // Functions.
      {T::kOnlyCalls | T::kLowered, {"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"}},
      {T::kOnlyCalls, {"For", "MapDefun", "PartitionedCall", "StatefulPartitionedCall", "_If", "_While"}},

      // Elements of data sets, and elements that may be missing. (Iterators may wait for Python.)
      {T::kKeepsNothing | T::kServesDirectCalls, {"IteratorGetNext", "IteratorGetNextAsOptional"}},
      {T::kServesDirectCalls, {"OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "OptionalNone"}},

      // TensorLists. (For a few types the plugin registers the CPU's kernels: ops/state/tensor_lists.cc.)
      {T::kOfTensorLists, {"TensorListElementShape", "TensorListGetItem", "TensorListLength", "TensorListResize"}},
      {T::kOfTensorLists | T::kMakesTensorList, {"TensorListConcatLists", "TensorListReserve", "TensorListSetItem"}},
      {T::kOfTensorLists | T::kMakesTensorList | T::kAccumulates,
       {"EmptyTensorList", "TensorListPopBack", "TensorListPushBack"}},
      {T::kOfTensorLists | T::kCopiesElements,
       {"TensorListConcat", "TensorListConcatV2", "TensorListGather", "TensorListPushBackBatch", "TensorListStack"}},
      {T::kOfTensorLists | T::kCopiesElements | T::kMakesTensorList,
       {"TensorListFromTensor", "TensorListScatter", "TensorListScatterIntoExistingList", "TensorListScatterV2",
        "TensorListSplit"}},
  };
  return *table;
}

}  // namespace xpu
