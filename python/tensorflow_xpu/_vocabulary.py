"""The names that the core has: written by `python -m tests.sweep.document`."""

#: The backends in the wheel, the default first.
SUBDEVICE_TYPES = (
    "XPU_HOST",
    "XPU_REFERENCE",
    "XPU_OPENCL",
    "XPU_CUDA",
)

#: The primitives, which TF_XPU_FAULT may name.
PRIMITIVES = (
    "Elementwise",
    "Reduce",
    "MatMul",
    "FindWeights",
    "WeightMatMul",
    "QuantizeRows",
    "Convolution",
    "Pool",
    "Normalize",
    "Softmax",
    "CopyStrided",
    "Gather",
    "Scatter",
    "Random",
    "Compact",
    "Scan",
    "Sort",
    "Search",
    "Unique",
    "Sample",
    "Resample",
    "Fft",
    "Factorize",
    "Solve",
    "Suppress",
    "SelectBoxes",
)

#: The passes over lists of commands, which TF_XPU_FUSION_WITHOUT may name.
PASSES = (
    "CanonicalizeCopies",
    "EliminateCommonSubexpressions",
    "DeduplicateIndexChecks",
    "ScheduleIndexChecks",
    "EliminateDeadCode",
    "FoldPadding",
    "PropagateCopiesForward",
    "PropagateCopiesBackward",
    "FoldMatMulBatch",
    "BatchMatMuls",
    "MultiplyInBytes",
    "ReadPackedWeights",
    "HoistInvariants",
    "FuseQuantization",
    "Rematerialize",
    "FuseElementwise",
    "FuseEpilogues",
    "FuseReductions",
    "UpdateInPlace",
    "ScheduleCopiesToHost",
    "ScheduleSmallResults",
    "ShareBatch",
    "TileBatch",
)
