"""Why compute ops run on the CPU in what tests/api_survey examines: each op that may, with the reason."""

STRINGS = "works on strings or their hashes"
TABLE = "the table is in host memory"
PIPELINE = "the input pipeline prepares batches on the CPU"
SEQUENTIAL = "each step needs the result of the one before; TensorFlow has a CPU kernel only"
CPU_ONLY = "TensorFlow has a CPU kernel only"
BESIDE_CPU = "its argument comes from an op on the CPU"

ON_CPU = {
    "IteratorGetNext": PIPELINE,
    **dict.fromkeys(["_TensorToHashBucketFast", "Fingerprint", "SparseCross"], STRINGS),
    "SparseToDense": BESIDE_CPU,
    "Range": "a range of floats takes host values; TensorFlow has a CPU kernel only",
    "LookupTableFindV2": TABLE,
    "Cast": BESIDE_CPU,
    **dict.fromkeys(["CTCBeamSearchDecoder", "IsotonicRegression", "ListDiff"], SEQUENTIAL),
    **dict.fromkeys(
        [
            "BandedTriangularSolve",
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
# For these there are kernels for XPU, too: they are on the CPU beside others that must be.
BESIDE = {"Cast", "IteratorGetNext", "SparseToDense", "_TensorToHashBucketFast"}


def why(op: str) -> str:
    """The reason, in the words of docs/models.md."""
    return ON_CPU.get(op, "no kernel yet")
