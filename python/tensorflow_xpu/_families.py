"""The families of ops, as docs/ops.md has them: written by `python -m tests.sweep.document`."""

FAMILIES = {
    "math": """
        Abs Acos Acosh Add AddN AddV2 All Angle Any ApproximateEqual ArgMax ArgMin Asin Asinh Atan Atan2 Atanh BiasAdd
        BiasAddGrad BiasAddV1 Bitcast BitwiseAnd BitwiseOr BitwiseXor Cast Ceil CheckNumerics CheckNumericsV2
        ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div DivNoNan Elu EluGrad Equal Erf Erfc Erfinv
        EuclideanNorm Exp Expm1 Fill Floor FloorDiv FloorMod Greater GreaterEqual Imag Inv InvGrad Invert IsFinite IsInf
        IsNan L2Loss LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr
        Max Maximum Mean Min Minimum Mod Mul MulNoNan Ndtri Neg NotEqual OnesLike Pow Prod Real RealDiv Reciprocal
        ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad RightShift Rint Round Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad
        Sigmoid SigmoidGrad Sign Sin Sinh Snapshot Softplus SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square
        SquaredDifference Sub Sum Tan Tanh TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy ZerosLike
    """,
    "array": """
        BatchToSpace BatchToSpaceND BroadcastTo Concat ConcatV2 ConjugateTranspose DepthToSpace Diag DiagPart
        MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3
        MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MirrorPad MirrorPadGrad OneHot Pack Pad PadV2 Reverse ReverseV2
        Roll Slice SpaceToBatch SpaceToBatchND SpaceToDepth Split SplitV StridedSlice StridedSliceGrad
        TensorStridedSliceUpdate Tile Transpose Unpack Where
    """,
    "gather and scatter": """
        DynamicStitch Gather GatherNd GatherV2 ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterDiv
        ResourceScatterMax ResourceScatterMin ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdMax
        ResourceScatterNdMin ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub ResourceScatterUpdate
        ResourceStridedSliceAssign ScatterNd ScatterNdNonAliasingAdd SegmentMax SegmentMean SegmentMin SegmentProd
        SegmentSum TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
        UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum
    """,
    "nn": """
        AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul BatchMatMulV2 BatchMatMulV3 Conv Conv2D
        Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2
        DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Einsum
        FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3
        LogSoftmax MatMul MaxPool MaxPool3D MaxPool3DGrad MaxPoolGrad MaxPoolGradV2 MaxPoolV2 Softmax
        SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
    """,
    "nets": """
        BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 CTCGreedyDecoder CTCLoss CTCLossV2 DebugNumericSummaryV2
        GRUBlockCell GRUBlockCellGrad LRN LRNGrad LSTMBlockCell LSTMBlockCellGrad MaxPool3DGradGrad MaxPoolGradGrad
        MaxPoolGradGradV2 MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax MaxPoolWithArgmax
    """,
    "quantize": """
        FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient
        FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient QuantizeAndDequantizeV2
        QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 QuantizeAndDequantizeV4Grad
    """,
    "random": """
        RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt RngReadAndSkip RngSkip StatefulRandomBinomial
        StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt
        StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg StatelessRandomNormal
        StatelessRandomNormalV2 StatelessRandomUniform StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2
        StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessTruncatedNormal
        StatelessTruncatedNormalV2 TruncatedNormal
    """,
    "order": """
        ApproxTopK Bincount Bucketize Cumprod Cumsum CumulativeLogsumexp DenseBincount DynamicPartition
        HistogramFixedWidth InTopK InTopKV2 LowerBound NthElement ReverseSequence SparseSegmentMean
        SparseSegmentMeanGrad SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments SparseSegmentSqrtN
        SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments SparseSegmentSum
        SparseSegmentSumGrad SparseSegmentSumGradV2 SparseSegmentSumWithNumSegments SparseToDense TopKV2 UniqueV2
        UniqueWithCounts UniqueWithCountsV2 UpperBound
    """,
    "random and parameters": """
        Multinomial ParameterizedTruncatedNormal RandomGamma StatelessMultinomial StatelessParameterizedTruncatedNormal
        StatelessRandomGammaV2 StatelessRandomGammaV3 StochasticCastToInt
    """,
    "special": """
        BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1
        Betainc Cross Dawsn Expint FresnelCos FresnelSin Igamma IgammaGradA Igammac NextAfter Polygamma PopulationCount
        RandomGammaGrad Spence Zeta
    """,
    "state": """
        AssignAddVariableOp AssignSubVariableOp ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad
        ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam ResourceApplyAdamWithAmsgrad
        ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2
        ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign
        ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp ResourceCountUpTo
        ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2
        ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2
        ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyProximalAdagrad
        ResourceSparseApplyProximalGradientDescent ResourceSparseApplyRMSProp
    """,
    "references": """
        ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam ApplyAddSign ApplyCenteredRMSProp
        ApplyFtrl ApplyFtrlV2 ApplyGradientDescent ApplyMomentum ApplyPowerSign ApplyProximalAdagrad
        ApplyProximalGradientDescent ApplyRMSProp Assign AssignAdd AssignSub CountUpTo DestroyTemporaryVariable
        IsVariableInitialized ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdMax
        ScatterNdMin ScatterNdSub ScatterNdUpdate ScatterSub ScatterUpdate SparseApplyAdadelta SparseApplyAdagrad
        SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2
        SparseApplyMomentum SparseApplyProximalAdagrad SparseApplyProximalGradientDescent SparseApplyRMSProp
        StridedSliceAssign TemporaryVariable Variable VariableV2
    """,
    "inplace": """
        DeepCopy Empty InplaceAdd InplaceSub InplaceUpdate SyncDevice _FusedBatchNormEx _ParallelConcatStart
        _ParallelConcatUpdate _TensorToHashBucketFast
    """,
    "sparse": """
        RaggedFillEmptyRows RaggedFillEmptyRowsGrad SparseConcat SparseFillEmptyRows SparseFillEmptyRowsGrad
        SparseReorder SparseReshape SparseSlice SparseSliceGrad SparseSplit SparseTensorDenseMatMul
    """,
    "tensor and arrays": """
        TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat TensorArrayConcatV2
        TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2
        TensorArrayGradV3 TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayReadV3
        TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySize TensorArraySizeV2 TensorArraySizeV3
        TensorArraySplit TensorArraySplitV2 TensorArraySplitV3 TensorArrayUnpack TensorArrayV2 TensorArrayV3
        TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3
    """,
    "images": """
        AdjustContrastv2 AdjustHue AdjustSaturation CombinedNonMaxSuppression CropAndResize CropAndResizeGradBoxes
        CropAndResizeGradImage Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput ExtractImagePatches
        ExtractVolumePatches HSVToRGB ImageProjectiveTransformV2 ImageProjectiveTransformV3 NonMaxSuppressionV2
        NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionWithOverlaps RGBToHSV ResizeArea ResizeBicubic
        ResizeBicubicGrad ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad
        ScaleAndTranslate ScaleAndTranslateGrad
    """,
    "linalg": """
        Cholesky LogMatrixDeterminant Lu MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve Qr
        SelfAdjointEigV2 Svd TridiagonalMatMul TridiagonalSolve
    """,
    "signal": """
        FFT FFT2D FFT3D FFTND IFFT IFFT2D IFFT3D IFFTND IRFFT IRFFT2D IRFFT3D IRFFTND RFFT RFFT2D RFFT3D RFFTND
    """,
    "tensor and lists": """
        TensorListConcat TensorListConcatV2 TensorListFromTensor TensorListGather TensorListGetItem TensorListPopBack
        TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2 TensorListSetItem TensorListSplit
        TensorListStack
    """,
    "xla": """
        XlaDynamicSlice XlaDynamicUpdateSlice
    """,
    "datasets and iterators": """
        AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 CollectiveAllToAllV3 CollectiveGather
        CollectiveInitializeCommunicator DeleteIterator DeserializeSparse ExperimentalMapDataset
        ExperimentalSleepDataset FinalizeDataset GeneratorDataset GetOptions IteratorFromStringHandleV2 IteratorGetNext
        IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2 MakeIterator OptionalFromValue
        OptionalGetValue OptionalHasValue OptionalNone OptionsDataset PrefetchDataset RaggedTensorFromVariant
        SleepDataset UnwrapDatasetVariant WrapDatasetVariant
    """,
}
