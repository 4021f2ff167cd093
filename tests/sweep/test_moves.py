"""Ops that move, select, order or compare numbers do the same with subnormal ones (docs/accuracy.md)."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.cases import CASES
from tests.sweep.registrations import all_registrations
from tests.sweep.runner import Rng, Var, _call, calls_of, hard_placement, nothing_folded

pytestmark = [pytest.mark.slow]

# Results are proportional to the arguments, or whole numbers that depend on their order alone.
NAMES = """
    Abs ArgMax ArgMin Assign BatchToSpace BatchToSpaceND BroadcastTo CheckNumerics CheckNumericsV2 ClipByValue Concat
    ConcatV2 ConjugateTranspose DeepCopy DepthToSpace Diag DiagPart DynamicPartition DynamicStitch Equal
    ExtractImagePatches ExtractVolumePatches Fill Gather GatherNd GatherV2 Greater GreaterEqual InplaceUpdate IsFinite
    IsInf IsNan Less LessEqual LowerBound MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3
    MatrixDiagV2 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 Max MaxPool MaxPool3D MaxPool3DGradGrad
    MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradGradWithArgmax MaxPoolV2 MaxPoolWithArgmax Maximum Min Minimum
    MirrorPad Mod Neg NotEqual NthElement OneHot Pack Pad PadV2 RaggedFillEmptyRows Relu ResizeNearestNeighbor
    ResourceGather ResourceGatherNd ResourceScatterMax ResourceScatterMin ResourceScatterNdMax ResourceScatterNdMin
    ResourceScatterNdUpdate ResourceScatterUpdate ResourceStridedSliceAssign Reverse ReverseSequence ReverseV2 Roll
    ScatterMax ScatterMin ScatterNdMax ScatterNdMin ScatterNdUpdate ScatterUpdate SegmentMax SegmentMin Select SelectV2
    Slice Snapshot SpaceToBatch SpaceToBatchND SpaceToDepth SparseConcat SparseFillEmptyRows SparseReorder SparseSlice
    SparseSliceGrad SparseSplit SparseToDense Split SplitV StridedSlice StridedSliceAssign StridedSliceGrad
    TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayReadV3 TensorArrayScatterV3 TensorArraySplitV3 TensorScatterMax
    TensorScatterMin TensorScatterUpdate TensorStridedSliceUpdate Tile TopKV2 Transpose TruncateMod UniqueV2
    UniqueWithCounts UniqueWithCountsV2 Unpack UpperBound Where XlaDynamicSlice XlaDynamicUpdateSlice
"""
LEAST = 2.0**-149


def scaled(v, scale):
    """Whole numbers in float32, times this."""
    if isinstance(v, Var):
        return Var(scaled(v.value, scale))
    if isinstance(v, list | tuple):
        return type(v)(scaled(x, scale) for x in v)
    if not isinstance(v, tf.Tensor) or v.dtype != tf.float32:
        return v
    return tf.constant((np.round(np.clip(v.numpy(), -1e5, 1e5) * 4) * scale).astype(np.float32))


def test_subnormal_numbers_are_moved_and_compared(xpu_device):
    kernels = {r.op: r for r in all_registrations() if tf.float32 in r.type_map.values()}
    wrong, compared = [], 0
    for op in NAMES.split():
        for call in calls_of(op, CASES[op], kernels[op].type_map)[:3]:
            arguments = call.case.make(call.types, Rng(call.seed))
            with hard_placement(), nothing_folded():
                plain, tiny = (
                    _call(op, {name: scaled(v, scale) for name, v in arguments.items()}, xpu_device)
                    for scale in (1.0, LEAST)
                )
            for a, b in zip(plain, tiny, strict=True):
                x = a.numpy().astype(np.float64) * LEAST if a.dtype == tf.float32 else a.numpy()
                compared += a.dtype == tf.float32 and bool(np.any(x))
                if not np.array_equal(b.numpy(), x):
                    wrong.append(f"{call}: {b.numpy().ravel()[:9]}, not {x.ravel()[:9]}")
    assert not wrong, "\n".join(wrong)
    assert compared > 200
