"""Why compute ops run on the CPU in what tests/coverage examines: each op that may, with the reason."""

STRINGS = "works on strings, or finds a string's hash"
TABLE = "a table in host memory"
PIPELINE = "the input pipeline prepares batches on the CPU"
SEQUENTIAL = "each step depends on the one before; TensorFlow has it for the CPU alone"
CPU_ONLY = "TensorFlow has it for the CPU alone"

ON_CPU = {
    "IteratorGetNext": PIPELINE,
    **dict.fromkeys(["_TensorToHashBucketFast", "Fingerprint", "SparseCross"], STRINGS),
    "SparseToDense": "beside what works on strings, in host memory",
    "Range": "of floating-point numbers: its arguments are host values, and TensorFlow has a kernel for the CPU alone",
    "XlaDynamicUpdateSlice": "of 32-bit integers, which TensorFlow keeps in host memory",
    "LookupTableFindV2": TABLE,
    "Cast": "beside the table, in host memory",
    **dict.fromkeys(["CTCBeamSearchDecoder", "IsotonicRegression", "ListDiff"], SEQUENTIAL),
    **dict.fromkeys(
        [
            "BandedTriangularSolve",
            "CombinedNonMaxSuppression",
            "ComputeAccidentalHits",
            "DenseCountSparseOutput",
            "DrawBoundingBoxesV2",
            "Eig",
            "ExtractGlimpseV2",
            "FractionalAvgPool",
            "FractionalAvgPoolGrad",
            "FractionalMaxPool",
            "FractionalMaxPoolGrad",
            "LogUniformCandidateSampler",
            "MatrixLogarithm",
            "MatrixSquareRoot",
            "NonMaxSuppressionV5",
            "RaggedTensorToTensor",
            "RandomPoissonV2",
            "SparseAdd",
            "SparseAddGrad",
            "SparseDenseCwiseAdd",
            "SparseReduceMax",
            "SparseReduceSum",
            "SparseSoftmax",
            "SparseSparseMaximum",
            "SparseSparseMinimum",
            "SparseTensorDenseAdd",
            "StatelessRandomBinomial",
            "StatelessRandomPoisson",
            "StatelessSampleDistortedBoundingBox",
            "UniformCandidateSampler",
        ],
        CPU_ONLY,
    ),
}
# Moves what others have computed.
NOT_COMPUTING = {"IteratorGetNext"}
# Of these there are kernels for XPU, too: what is on the CPU stands beside what has to be.
BESIDE = {"Cast", "IteratorGetNext", "SparseToDense", "XlaDynamicUpdateSlice", "_TensorToHashBucketFast"}


def why(op: str) -> str:
    """The reason, in the words of docs/models.md."""
    return ON_CPU.get(op, "no kernel yet")
