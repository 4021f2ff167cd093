"""Linear algebra through TensorFlow's public functions: gradients, and what singular matrices and bad shapes give."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops
RNG = np.random.default_rng(0)
GENERAL = RNG.uniform(-1, 1, (2, 4, 4)) + 3 * np.roll(np.eye(4), 1, axis=0)
DEFINITE = GENERAL @ np.swapaxes(GENERAL, 1, 2)
RIGHT = RNG.uniform(-1, 1, (2, 4, 3))
DIAGONALS = RNG.uniform(-1, 1, (2, 3, 4)) + np.array([[0], [4], [0]])


def nan(*shape):
    return np.full(shape, np.nan, np.float32)


def ones(*shape):
    return np.ones(shape, np.float32)


def projections(a):
    """The eigenvectors, times 1 to 4: the part that does not depend on their signs."""
    v = tf.linalg.eigh(a)[1]
    return tf.matmul(v * np.arange(1.0, 5.0), v, transpose_b=True)


FUNCTIONS = {
    "cholesky": (tf.linalg.cholesky, DEFINITE),
    "inv": (tf.linalg.inv, GENERAL),
    "det": (tf.linalg.det, GENERAL),
    "logdet": (tf.linalg.logdet, DEFINITE),
    "slogdet": (lambda a: tf.linalg.slogdet(a)[1], GENERAL),
    "solve": (tf.linalg.solve, GENERAL, RIGHT),
    "triangular_solve": (tf.linalg.triangular_solve, DEFINITE, RIGHT),
    "cholesky_solve": (tf.linalg.cholesky_solve, DEFINITE, RIGHT),
    "lstsq": (tf.linalg.lstsq, GENERAL, RIGHT),
    "tridiagonal_solve": (lambda d, b: tf.linalg.tridiagonal_solve(d, b), DIAGONALS, RIGHT),
    "tridiagonal_matmul": (lambda d, b: tf.linalg.tridiagonal_matmul(d, b, "compact"), DIAGONALS, RIGHT),
    "eigh": (lambda a: tf.linalg.eigh(a)[0], DEFINITE),
    "eigh's projections": (projections, DEFINITE),
    "svd": (lambda a: tf.linalg.svd(a)[0], GENERAL),
    "pinv": (tf.linalg.pinv, GENERAL),
    "qr": (tf.linalg.qr, GENERAL),
}


def with_gradients(f, arguments, device):
    with tf.device(device), tf.GradientTape() as tape:
        arguments = [tf.convert_to_tensor(a) for a in arguments]
        tape.watch(arguments)
        results = tf.nest.flatten(f(*arguments))
        # Weighted: of vectors of norm 1 the sum of squares has no gradient.
        weights = [np.arange(1.0, 1 + r.shape.num_elements()).reshape(r.shape) for r in results]
        loss = tf.add_n([tf.reduce_sum(tf.square(r) * w) for r, w in zip(results, weights, strict=True)])
    return results + [g for g in tape.gradient(loss, arguments) if g is not None]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_gradients(name, xpu_device):
    f, *arguments = FUNCTIONS[name]
    in_graph = tf.function(with_gradients, autograph=False)
    for run in (with_gradients, in_graph):
        expected = run(f, arguments, "/cpu:0")
        for got, want in zip(run(f, arguments, xpu_device), expected, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            # Conditions of a few tens, as many roundings of double, and squares of both in second factors.
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


BAD = {
    "Cholesky of a vector": lambda: raw.Cholesky(input=ones(3)),
    "Cholesky of a rectangle": lambda: raw.Cholesky(input=ones(2, 3)),
    "Lu of a vector": lambda: raw.Lu(input=ones(3)),
    "Lu of a rectangle": lambda: raw.Lu(input=ones(2, 3)),
    "Lu, singular": lambda: raw.Lu(input=ones(2, 3, 3)),
    "Lu of zeros": lambda: raw.Lu(input=0 * ones(2, 2)),
    "Lu of NaN": lambda: raw.Lu(input=nan(2, 2)),
    "Qr of a vector": lambda: raw.Qr(input=ones(3)),
    "Svd of a scalar": lambda: raw.Svd(input=ones()),
    "SelfAdjointEigV2 of a rectangle": lambda: raw.SelfAdjointEigV2(input=ones(2, 3)),
    "SelfAdjointEigV2 of NaN": lambda: raw.SelfAdjointEigV2(input=nan(3, 3)),
    "MatrixDeterminant of a rectangle": lambda: raw.MatrixDeterminant(input=ones(2, 3)),
    "LogMatrixDeterminant of a vector": lambda: raw.LogMatrixDeterminant(input=ones(3)),
    "MatrixInverse, singular": lambda: raw.MatrixInverse(input=ones(2, 2)),
    "MatrixInverse of NaN": lambda: raw.MatrixInverse(input=nan(2, 2)),
    "MatrixInverse of a rectangle": lambda: raw.MatrixInverse(input=ones(2, 3)),
    "MatrixSolve, singular": lambda: raw.MatrixSolve(matrix=ones(2, 2), rhs=ones(2, 1)),
    "MatrixSolve of a rectangle": lambda: raw.MatrixSolve(matrix=ones(2, 3), rhs=ones(2, 1)),
    "MatrixSolve, other rows": lambda: raw.MatrixSolve(matrix=ones(2, 2), rhs=ones(3, 1)),
    "MatrixSolve, other ranks": lambda: raw.MatrixSolve(matrix=ones(2, 2), rhs=ones(1, 2, 1)),
    "MatrixSolve, other batches": lambda: raw.MatrixSolve(matrix=ones(3, 2, 2), rhs=ones(2, 2, 1)),
    "MatrixTriangularSolve of a vector": lambda: raw.MatrixTriangularSolve(matrix=ones(3), rhs=ones(3, 1)),
    "MatrixTriangularSolve for a vector": lambda: raw.MatrixTriangularSolve(matrix=ones(3, 3), rhs=ones(3)),
    "MatrixTriangularSolve of a rectangle": lambda: raw.MatrixTriangularSolve(matrix=ones(2, 3), rhs=ones(2, 1)),
    "MatrixTriangularSolve, other rows": lambda: raw.MatrixTriangularSolve(matrix=ones(2, 2), rhs=ones(3, 1)),
    "MatrixTriangularSolve, batches": lambda: raw.MatrixTriangularSolve(matrix=ones(2, 2, 2), rhs=ones(3, 2, 1)),
    "TridiagonalSolve, four diagonals": lambda: raw.TridiagonalSolve(diagonals=ones(4, 2), rhs=ones(2, 1)),
    "TridiagonalSolve, other rows": lambda: raw.TridiagonalSolve(diagonals=ones(3, 2), rhs=ones(3, 1)),
    "TridiagonalSolve, perturbed alone": lambda: raw.TridiagonalSolve(
        diagonals=ones(3, 2), rhs=ones(2, 1), partial_pivoting=False, perturb_singular=True
    ),
    "TridiagonalMatMul, another length": lambda: raw.TridiagonalMatMul(
        superdiag=ones(1, 3), maindiag=ones(1, 3), subdiag=ones(1, 2), rhs=ones(3, 1)
    ),
}


def failure(f, device):
    """The exception's class and its words, without where it came from."""
    with hard_placement(), tf.device(device), pytest.raises((tf.errors.OpError, ValueError)) as caught:
        tf.nest.map_structure(np.asarray, f())
    message = str(caught.value).split("}} ")[-1].split(" [Op:")[0].split("\n")[0]
    return type(caught.value), message


@pytest.mark.parametrize("name", BAD)
def test_bad_input_fails_as_on_the_cpu(name, xpu_device):
    for run in (BAD[name], tf.function(BAD[name], autograph=False)):
        assert failure(run, xpu_device) == failure(run, "/cpu:0")


def test_a_singular_matrix_within_a_cluster_names_the_op(xpu_device):
    @tf.function(autograph=False)
    def f(a):
        with tf.device(xpu_device):
            return tf.reduce_sum(tf.linalg.inv(tf.tanh(a) * 2.0) + 1.0)

    assert np.isfinite(f(tf.eye(3)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input is not invertible"):
        f(tf.ones((3, 3)))
    assert np.isfinite(f(tf.eye(3)))


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda: raw.Cholesky(input=-np.eye(2, dtype=np.float32)), [[[np.nan, 0], [np.nan, np.nan]]]),
        (lambda: raw.MatrixDeterminant(input=ones(2, 2)), [0.0]),
        (lambda: raw.MatrixDeterminant(input=ones(2, 0, 0)), [[1.0, 1.0]]),
        (lambda: raw.LogMatrixDeterminant(input=ones(2, 2)), [0.0, -np.inf]),
        (lambda: raw.LogMatrixDeterminant(input=nan(2, 2)), [np.nan, np.nan]),
        (lambda: raw.LogMatrixDeterminant(input=-np.inf * ones(1, 1)), [-1.0, np.inf]),
        (lambda: raw.Svd(input=nan(1, 1)), [[np.nan], [[np.nan]], [[np.nan]]]),
        (lambda: raw.Qr(input=ones(2, 0), full_matrices=True), [[[1, 0], [0, 1]], np.zeros((2, 0))]),
        (lambda: raw.TridiagonalSolve(diagonals=0 * ones(3, 2), rhs=ones(2, 1)), [[[np.nan], [np.nan]]]),
        (lambda: raw.MatrixTriangularSolve(matrix=0 * ones(1, 1), rhs=ones(1, 1)), [[[np.inf]]]),
    ],
)
def test_what_has_no_factors(f, expected, xpu_device):
    with hard_placement(), tf.device(xpu_device):
        for got, want in zip(tf.nest.flatten(f()), expected, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_singular_tridiagonal_matrix_perturbed(xpu_device):
    diagonals = np.array([[1, 0], [1, 1], [0, 1]], np.float64)
    results = []
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            x = raw.TridiagonalSolve(diagonals=diagonals, rhs=np.array([[1.0], [2.0]]), perturb_singular=True)
            results.append(x.numpy())
    assert np.abs(results[0]).max() > 1e12
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)
