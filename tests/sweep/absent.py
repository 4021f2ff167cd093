"""The ops that TensorFlow has for GPUs, or another accelerator's plugin has, and XPU has not; and why.

The lists: TensorFlow 2.21's kernels of the type GPU beyond those for every device. Also the ops of Intel's extension,
DirectML's, Metal's and the community's sample plugin.
"""

from __future__ import annotations

from tensorflow.python.framework import op_def_registry

# Why: ops.
REASONS = {
    "TensorFlow refuses them in graphs of today, for an op of another name (whose kernel is there)": """
        AdjustContrast BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D BatchIFFT3D BatchMatrixBandPart
        BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag BatchMatrixTriangularSolve BatchSvd
        BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad Conv3DBackpropFilter Conv3DBackpropInput
        QuantizeAndDequantize TileGrad TopK
    """,
    "TensorFlow puts others in their place before a graph runs, which are there": "ParallelConcat",
    "they run, or are compiled, by XLA alone, which knows no XPU": """
        XlaBroadcastHelper XlaCallModule XlaConv XlaConvV2 XlaDequantize XlaDot XlaDotV2 XlaEinsum XlaGather XlaIf
        XlaKeyValueSort XlaLaunch XlaOptimizationBarrier XlaPad XlaRecv XlaReduce XlaReducePrecision XlaReduceWindow
        XlaReplicaId XlaRngBitGenerator XlaScatter XlaSelectAndScatter XlaSelfAdjointEig XlaSend XlaSharding XlaSort
        XlaSpmdShardToFullShape XlaSvd XlaVariadicReduce XlaVariadicReduceV2 XlaVariadicSort XlaWhile
    """,
    "their weights are in the layout of cuDNN; Keras's recurrent layers do without on an XPU (gpu.md)": """
        CudnnRNN CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3 CudnnRNNCanonicalToParams
        CudnnRNNCanonicalToParamsV2 CudnnRNNParamsSize CudnnRNNParamsToCanonical CudnnRNNParamsToCanonicalV2 CudnnRNNV2
        CudnnRNNV3
    """,
    "they are calls of NVIDIA's NCCL; the collectives of tf.distribute run (distribution.md)": """
        NcclAllReduce NcclBroadcast NcclReduce _NcclBroadcastRecv _NcclBroadcastSend _NcclReduceRecv _NcclReduceSend
    """,
    "TensorFlow's kernels make the addition that they merge with for a GPU; CollectiveReduceV2 runs": """
        CollectiveReduce CollectiveReduceV3
    """,
    "Grappler writes them for GPUs and processors alone; clusters do as much on an XPU (clusters.md)": """
        _FusedBatchNormGradEx _FusedConv2D _FusedMatMul
    """,
    "their matrices are variants of a C++ class of TensorFlow's CPU and CUDA kernels; tf.sparse does without them": """
        CSRSparseMatrixComponents CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor DenseToCSRSparseMatrix
        SparseMatrixAdd SparseMatrixMatMul SparseMatrixMul SparseMatrixNNZ SparseMatrixSoftmax SparseMatrixSoftmaxGrad
        SparseMatrixSparseMatMul SparseMatrixTranspose SparseMatrixZeros SparseTensorToCSRSparseMatrix
    """,
    "nothing of a device is in them: they ask for a setting, wait, count, or test TensorFlow itself": """
        CheckPinned DummyIterationCounter IsTensorFloat32Enabled SleepOp
    """,
    "debugging copies of TensorFlow's own, between the host and the type GPU": "_CopyFromGpuToHost _CopyFromHostToGpu",
    "a dataset of another process, whose elements are in host memory": "DataServiceDatasetV4",
    "it selects a few of many boxes one after the other: a processor's work": "GenerateBoundingBoxProposals",
    "they are of quantized types, which no accelerator of TensorFlow itself has; fake quantization is there": """
        Dequantize QuantizeV2 QuantizedAvgPool QuantizedConcatV2 QuantizedConv2D QuantizedConv2DAndRelu
        QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize QuantizedConv2DPerChannel
        QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu QuantizedConv2DWithBiasAndReluAndRequantize
        QuantizedConv2DWithBiasAndRequantize QuantizedConv2DWithBiasSignedSumAndReluAndRequantize
        QuantizedConv2DWithBiasSumAndRelu QuantizedConv2DWithBiasSumAndReluAndRequantize QuantizedDepthwiseConv2D
        QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu
        QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize QuantizedMatMulWithBias
        QuantizedMatMulWithBiasAndDequantize QuantizedMatMulWithBiasAndRelu
        QuantizedMatMulWithBiasAndReluAndRequantize QuantizedMatMulWithBiasAndRequantize QuantizedMaxPool
        QuantizedReshape RequantizationRangePerChannel RequantizePerChannel _QuantizedMatMul _QuantizedMaxPool3D
    """,
    "Intel's extension alone writes it into graphs": "_MklLayerNorm",
    "they count indices of sparse or ragged tensors; DenseBincount is there": "RaggedBincount SparseBincount",
}

FORMER = next(iter(REASONS))


def absent() -> dict[str, list[str]]:
    """By reason: the ops."""
    return {why: ops.split() for why, ops in REASONS.items()}


def problems(registered: set[str]) -> list[str]:
    """One line for each op that is there after all, named twice, or not refused by TensorFlow though said to be."""
    named = [op for ops in absent().values() for op in ops]
    lines = [f"{op} has a kernel" for op in named if op in registered]
    lines += [f"{op} is named {named.count(op)} times" for op in sorted(set(named)) if named.count(op) > 1]
    former = absent()[FORMER]
    for op in named:
        op_def = op_def_registry.get(op)
        if op_def is not None and op_def.HasField("deprecation") != (op in former):
            lines.append(f"{op} is{'' if op in former else ' not'} among those that TensorFlow refuses")
    return lines
