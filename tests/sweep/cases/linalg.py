"""Ops on matrices: factors, determinants, systems of equations.

Their errors are those of backward stable algorithms. The result is exact for a matrix that differs by a few roundings
of its norm, n of them at most for n rows. The effect of that on the result is its condition, by perturbation theory.
See Higham, chapters 7 to 10 and 19, and Golub and Van Loan, chapter 8. It is m of rounding.py beside each table.
Vectors that are unique but for their phases are not compared: their case checks that they are what they are called.
"""

import numpy as np
import tensorflow as tf

from tests.sweep.runner import ABSOLUTE, Case

EPSILON = {np.dtype(t): np.finfo(t).eps for t in (np.float32, np.float64, np.complex64, np.complex128)}


def general(t, r, *shape):
    """Well conditioned, and with pivots that are not on the diagonal, yet beyond doubt: 4 on one, at most 1 beside."""
    n = shape[-1]
    return r.uniform(shape, t, -0.7, 0.7) + tf.cast(np.roll(4 * np.eye(n), 1, axis=0), t)


def hermitian(t, r, *shape):
    """Positive definite: at least 2, at most 5 or so."""
    a = r.uniform(shape, t, -0.5, 0.5)
    return (a + tf.linalg.adjoint(a)) / 2 + tf.cast(3.5 * np.eye(shape[-1]), t)


def norm(a):
    return np.linalg.norm(a, axis=(-2, -1), keepdims=True)


def condition(a):
    return norm(a) * norm(np.linalg.inv(a))


def of_norm(name, factor=condition):
    """m: the condition of argument `name`, times the norm of each result."""

    def m(arguments, exact):
        c = factor(arguments[name])
        return [c * norm(x) * np.ones(x.shape) if x.dtype.kind in "fc" else None for x in exact]

    return m


def case(make, n, relative_to, **kw):
    return Case(lambda t, r: make(t["T"], r), roundings=n, relative_to=relative_to, **kw)


def lu_condition(a):
    """The condition of the factors of a without pivoting; rows are exchanged beforehand here."""
    n = a.shape[-1]
    u = np.array(np.roll(a, -1, axis=-2))
    lower = np.zeros_like(u) + np.eye(n)
    for k in range(n):
        lower[..., k + 1 :, k] = u[..., k + 1 :, k] / u[..., k : k + 1, k]
        u[..., k + 1 :, :] -= lower[..., k + 1 :, k : k + 1] * u[..., k : k + 1, :]
    return norm(np.linalg.inv(lower)) * norm(np.linalg.inv(u)) * norm(a)


def same(x, y, what, roundings):
    error = np.max(np.abs(x - y), initial=0.0)
    allowed = roundings * EPSILON[x.dtype]
    assert error <= allowed, f"{what}: an error of {error}, allowed is {allowed}"


def adjoint(a):
    return np.conj(np.swapaxes(a, -2, -1))


def fixed(shape, dtype, symmetric=False):
    """The same matrices in every call, for checks that see results alone; elements of 1 at most."""
    rng = np.random.default_rng(shape[-1])
    a = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if dtype.is_complex else 0)
    a = (a + adjoint(a)) / 2 if symmetric else a
    return a.astype(dtype.as_numpy_dtype)


def eigenvectors(*shape):
    def check(runs):
        for e, v in runs:
            a = fixed(shape, tf.as_dtype(v.dtype), True)
            same(adjoint(v) @ v, np.broadcast_to(np.eye(shape[-1]), shape).astype(v.dtype), "v^H v", 20 * shape[-1])
            same(a @ v, v * e[..., None, :], "a v - v e", 20 * shape[-1] ** 1.5)

    return Case(lambda t, r: {"input": tf.constant(fixed(shape, t["T"], True))}, check=check)


def eigenvalues(*shape):
    """Against numpy's in double: how many roundings two algorithms take says nothing about each other."""

    def check(runs):
        for e, *_ in runs:
            a = fixed(shape, tf.as_dtype(e.dtype), True)
            exact = np.linalg.eigvalsh(a.astype(np.complex128))
            same(e, exact.astype(e.dtype), "eigenvalues", 20 * shape[-1] ** 0.5)

    return Case(lambda t, r: {"input": tf.constant(fixed(shape, t["T"], True)), "compute_v": False}, check=check)


def singular_vectors(full, *shape):
    k = min(shape[-2:])

    def check(runs):
        for s, u, v in runs:
            a = fixed(shape, tf.as_dtype(u.dtype))
            for name, q in (("u", u), ("v", v)):
                eye = np.eye(q.shape[-1]).astype(q.dtype)
                same(
                    adjoint(q) @ q, np.broadcast_to(eye, (*shape[:-2], *eye.shape)), f"{name}^H {name}", 20 * max(shape)
                )
            assert (np.diff(s.real, axis=-1) <= 0).all(), "singular values do not descend"
            product = u[..., :k] * s[..., None, :] @ adjoint(v[..., :k])
            same(product, a, "u s v^H", 20 * max(shape) * k**0.5)

    return Case(
        lambda t, r: {"input": tf.constant(fixed(shape, t["T"])), "full_matrices": full, "compute_uv": True},
        check=check,
    )


def q_r(arguments, exact):
    """For q and r, Householder's: the condition of the columns. For q, whose columns have norm 1, alone."""
    a = arguments["input"]
    c = norm(a) * norm(np.linalg.pinv(a))
    return [c * np.ones(exact[0].shape), c * norm(exact[1]) * np.ones(exact[1].shape)]


def determinant(arguments, exact):
    c = condition(arguments["input"])[..., 0, 0]
    return [c * np.abs(x) for x in exact]


def log_determinant(arguments, exact):
    c = condition(arguments["input"])[..., 0, 0]
    return [c * np.ones(x.shape) for x in exact]


def values_of(arguments, exact):
    """For eigenvalues and singular values: the norm, by Weyl."""
    return [norm(arguments["input"])[..., 0] * np.ones(exact[0].shape), *exact[1:]]


def solution(arguments, exact):
    return [condition(arguments["matrix"]) * norm(exact[0]) * np.ones(exact[0].shape)]


def triangular(arguments, exact):
    """Element by element |t^-1| |t| |x|."""
    t = np.tril(arguments["matrix"]) if arguments["lower"] else np.triu(arguments["matrix"])
    t = adjoint(t) if arguments["adjoint"] else t
    return [np.abs(np.linalg.inv(t)) @ np.abs(t) @ np.abs(exact[0])]


def whole(diagonals):
    n = diagonals.shape[-1]
    a = np.zeros((*diagonals.shape[:-2], n, n), diagonals.dtype)
    i = np.arange(n)
    a[..., i[:-1], i[1:]] = diagonals[..., 0, :-1]
    a[..., i, i] = diagonals[..., 1, :]
    a[..., i[1:], i[:-1]] = diagonals[..., 2, 1:]
    return a


def tridiagonal(arguments, exact):
    return [condition(whole(arguments["diagonals"])) * norm(exact[0]) * np.ones(exact[0].shape)]


def diagonals(t, r, *shape):
    return r.uniform(shape, t, -1, 1) + tf.cast([[0], [3], [0]], t)


def systems(shapes):
    return [
        case(
            lambda t, r, a=a, b=b, adj=adj: {"matrix": general(t, r, *a), "rhs": r.uniform(b, t), "adjoint": adj},
            3 * a[-1],
            solution,
        )
        for a, b in shapes
        for adj in (False, True)
    ]


CASES = {
    "Cholesky": [
        case(lambda t, r, s=s: {"input": hermitian(t, r, *s)}, s[-1] + 1, of_norm("input"))
        for s in [(1, 1), (5, 5), (2, 3, 7, 7), (2, 0, 0)]
    ],
    "Lu": [
        Case(
            lambda t, r, s=s: {"input": general(t["T"], r, *s), "output_idx_type": t["output_idx_type"]},
            roundings=s[-1],
            relative_to=of_norm("input", lu_condition),
        )
        for s in [(2, 2), (2, 3, 6, 6), (2, 0, 0)]
    ],
    "Qr": [
        case(
            lambda t, r, s=s, c=c, f=f: {"input": general(t, r, *s, s[-1])[..., :c], "full_matrices": f},
            4 * s[-1],
            q_r,
        )
        for s, c, f in [((5,), 5, True), ((2, 7), 7, False), ((2, 6), 4, False)]
    ],
    "SelfAdjointEigV2": [
        eigenvalues(2, 5, 5),
        eigenvectors(1, 1),
        eigenvectors(3, 7, 7),
    ],
    "Svd": [
        case(
            lambda t, r: {"input": r.uniform((2, 5, 3), t), "compute_uv": False, "full_matrices": False},
            40,
            values_of,
            outputs=1,
        ),
        singular_vectors(False, 2, 6, 4),
        singular_vectors(True, 3, 5),
    ],
    "MatrixDeterminant": [
        case(lambda t, r, s=s: {"input": general(t, r, *s)}, s[-1] ** 2 + 8, determinant)
        for s in [(1, 1), (4, 4), (2, 3, 5, 5)]
    ],
    "LogMatrixDeterminant": [
        case(lambda t, r, s=s: {"input": general(t, r, *s)}, s[-1] ** 2 + 4, log_determinant)
        for s in [(1, 1), (4, 4), (2, 3, 5, 5)]
    ],
    "MatrixInverse": [
        case(lambda t, r, s=s, a=a: {"input": general(t, r, *s), "adjoint": a}, 3 * s[-1], of_norm("input"))
        for s, a in [((4, 4), False), ((2, 3, 5, 5), True), ((2, 0, 0), False)]
    ],
    "MatrixSolve": systems([((4, 4), (4, 1)), ((2, 3, 5, 5), (2, 3, 5, 2))]),
    "MatrixTriangularSolve": [
        case(
            lambda t, r, a=a, b=b, low=low, adj=adj: {
                "matrix": r.uniform(a, t, -1, 1) + tf.cast(2 * np.eye(a[-1]), t),
                "rhs": r.uniform(b, t),
                "lower": low,
                "adjoint": adj,
            },
            a[-1] + 1,
            triangular,
        )
        for a, b in [((4, 4), (4, 3)), ((2, 1, 5, 5), (3, 5, 2))]
        for low in (False, True)
        for adj in (False, True)
    ],
    "TridiagonalSolve": [
        case(
            lambda t, r, s=s, p=p, z=z: {
                "diagonals": diagonals(t, r, *s[:-1], 3, s[-1]),
                "rhs": r.uniform((*s, 2), t),
                "partial_pivoting": p,
                "perturb_singular": z,
            },
            10,
            tridiagonal,
        )
        for s, p, z in [((1,), True, False), ((2, 6), True, False), ((5,), False, False), ((5,), True, True)]
    ],
    "TridiagonalMatMul": [
        case(
            lambda t, r, s=s: {
                **{name: r.uniform((*s[:-2], 1, s[-2]), t) for name in ("superdiag", "maindiag", "subdiag")},
                "rhs": r.uniform(s, t),
            },
            4,
            ABSOLUTE,
        )
        for s in [(1, 2), (2, 3, 5, 4)]
    ],
}
