"""Why compute ops run on the CPU in what tests/coverage examines: each op that may, with the reason."""

STRINGS = "works on strings, or finds a string's hash"
TABLE = "a table in host memory"
PIPELINE = "the input pipeline prepares batches on the CPU"
SEQUENTIAL = "each step depends on the one before; TensorFlow has it for the CPU alone"
CPU_ONLY = "TensorFlow has it for the CPU alone"

ON_CPU = {
    "IteratorGetNext": PIPELINE,
    **dict.fromkeys(["_TensorToHashBucketFast", "Fingerprint"], STRINGS),
    "LookupTableFindV2": TABLE,
    "Cast": "beside the table, in host memory",
    **dict.fromkeys(["CTCBeamSearchDecoder", "CTCGreedyDecoder", "IsotonicRegression", "ListDiff"], SEQUENTIAL),
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
# Of these there are kernels for XPU, too: what is on the CPU stands beside what has to be.
BESIDE = {"Cast", "IteratorGetNext", "_TensorToHashBucketFast"}


def why(op: str) -> str:
    """The reason, in the words of docs/models.md."""
    return ON_CPU.get(op, "no kernel yet")
