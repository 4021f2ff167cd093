"""Einsum and MatMul on XPU against NumPy: equations of every kind, diagonals, batches that broadcast, gradients."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_xpu
from tests.support.missing_capabilities import needs
from tests.support.op_checks import CPU, XPU, on, on_xpu, whole
from tests.sweep.runner import hard_placement

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def placed_hard():
    with hard_placement():
        yield


# --- Einsum ---------------------------------------------------------------------------------------------------------

EINSUMS = [
    ("ab,bc->ac", (3, 4), (4, 5)),
    ("ab,bc->ca", (3, 4), (4, 5)),
    ("ba,cb->ca", (4, 3), (5, 4)),
    ("abc,cde->abde", (2, 3, 4), (4, 5, 6)),
    ("abde,cde->abc", (2, 3, 5, 6), (4, 5, 6)),
    ("abc,abde->cde", (2, 3, 4), (2, 3, 5, 6)),
    ("aecd,abcd->acbe", (2, 20, 3, 18), (2, 19, 3, 18)),
    ("acbe,aecd->abcd", (2, 3, 19, 20), (2, 20, 3, 18)),
    ("acbe,abcd->aecd", (2, 3, 19, 20), (2, 19, 3, 18)),
    ("aecd,abcd->acbe", (2, 150, 3, 64), (2, 1, 3, 64)),  # keys and values that one token meets
    ("acbe,aecd->abcd", (2, 3, 1, 150), (2, 150, 3, 64)),
    ("abcd,cde->abe", (2, 3, 4, 5), (4, 5, 6)),
    ("abd,dbc->acb", (3, 4, 5), (5, 4, 6)),  # the batch is the innermost axis of the output
    ("abcd,cbda->", (2, 3, 4, 5), (4, 3, 5, 2)),
    ("abcd,dbe->ace", (2, 3, 4, 5), (5, 3, 6)),
    ("abcd,bdec->eab", (2, 3, 4, 5), (3, 5, 6, 4)),
    ("ab,cd->dcba", (2, 3), (4, 5)),
    ("ab,ab->ba", (2, 3), (2, 3)),
    ("ab,ab->a", (2, 3), (2, 3)),
    ("ab,b->a", (2, 3), (3,)),
    ("a,ab->b", (2,), (2, 3)),
    ("a,a->", (7,), (7,)),
    (",->", (), ()),
    (",ab->ba", (), (2, 3)),
    ("aab,bc->ac", (3, 3, 4), (4, 5)),
    ("abb,bc->ac", (3, 4, 4), (4, 5)),
    ("abc,cd->d", (3, 4, 5), (5, 2)),
    ("abc,abc->ca", (3, 4, 5), (3, 4, 5)),
    ("abc,ab->cb", (3, 4, 5), (3, 4)),
    ("abc,ab->ac", (3, 4, 5), (3, 4)),
    ("ab,cab->bc", (3, 4), (5, 3, 4)),
    ("ba,abc->cb", (4, 3), (3, 4, 5)),
    ("a,b->ba", (3,), (4,)),
    ("ab,cb->bac", (3, 4), (5, 4)),
    ("ab,abc->cc", (3, 4), (3, 4, 5)),
    ("ab,cd->ac", (3, 4), (5, 2)),
    ("ab,bc->ac", (3, 1), (1, 5)),
    ("ab,bc->ac", (1, 4), (4, 1)),
    ("ab,bc->ac", (3, 0), (0, 5)),
    ("ab,bc->ac", (0, 4), (4, 5)),
    ("...ab,...bc->...ac", (2, 1, 3, 4), (5, 4, 6)),
    ("a...b,b...c->...ca", (2, 3, 4), (4, 1, 5)),
    ("...,...->...", (3, 1), (1, 4)),
    ("ab...,b->a...", (2, 3, 4, 5), (3,)),
    ("...a,...a->...", (3, 4), (3, 4)),
    ("Ab,bC->AC", (3, 4), (4, 5)),
]


def np_einsum(equation, *arrays):
    """numpy.einsum, which does not write diagonals."""
    inputs, out = equation.split("->")
    distinct = "".join(dict.fromkeys(out)) if "." not in out else out
    result = np.einsum(f"{inputs}->{distinct}", *arrays)
    if distinct == out:
        return result
    full = np.zeros([result.shape[distinct.index(c)] for c in out], result.dtype)
    np.einsum(f"{out}->{distinct}", full)[...] = result
    return full


@pytest.mark.parametrize(("equation", "a", "b"), EINSUMS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int64, np.int32, np.float16])
def test_einsum_of_two(equation, a, b, dtype):
    x, y = whole(*a).astype(dtype), whole(*b, seed=1).astype(dtype)
    if dtype == np.complex64:
        x, y = x + 1j * whole(*a, seed=2), y - 1j * whole(*b, seed=3)
        x, y = x.astype(dtype), y.astype(dtype)
    wide = np.complex128 if dtype == np.complex64 else np.float64
    want = np_einsum(equation, x.astype(wide), y.astype(wide))
    with tf.device(XPU):
        got = raw.Einsum(inputs=[x, y], equation=equation)
        traced = tf.function(lambda *t: raw.Einsum(inputs=t, equation=equation), autograph=False)(x, y)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy().astype(wide), want)
    np.testing.assert_array_equal(traced.numpy().astype(wide), want)


@pytest.mark.parametrize(("equation", "a", "b"), [e for e in EINSUMS if 150 in e[1] + e[2]])
def test_einsum_of_a_token_and_large_heads_is_a_product(equation, a, b, tmp_path):
    """A sum over products of elements takes twice as long."""
    with tf.device(XPU):
        x, y = tf.ones(a), tf.ones(b)
        with tensorflow_xpu.profile(tmp_path) as profile:
            tf.einsum(equation, x, y).numpy()
    commands = [event.name for event in profile.events if event.kind == "command"]
    assert len(commands) == 1 and commands[0].startswith("MatMul"), commands


EINSUMS_OF_ONE = [
    ("ab->ba", (3, 4)),
    ("ab->ab", (3, 4)),
    ("abc->cab", (3, 4, 5)),
    ("abc->b", (3, 4, 5)),
    ("abc->ca", (3, 4, 5)),
    ("ab->", (3, 4)),
    ("aa->a", (4, 4)),
    ("aa->", (4, 4)),
    ("aba->b", (4, 3, 4)),
    ("abab->ba", (4, 3, 4, 3)),
    ("a...->...a", (2, 3, 4)),
    ("a...b->...", (2, 3, 4, 5)),
    ("...->...", (2, 3)),
    ("ab->ba", (1, 4)),
    ("ab->a", (3, 0)),
    ("->", ()),
]


@pytest.mark.parametrize(("equation", "shape"), EINSUMS_OF_ONE)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_einsum_of_one(equation, shape, dtype):
    x = whole(*shape).astype(dtype)
    with tf.device(XPU):
        got = raw.Einsum(inputs=[x], equation=equation)
    np.testing.assert_array_equal(got, np.einsum(equation, x))


def test_einsum_fills_diagonals():
    x = whole(3)
    np.testing.assert_array_equal(on_xpu(raw.Einsum, inputs=[x], equation="i->ii"), np.diag(x))
    y = whole(3, 4)
    got = on_xpu(raw.Einsum, inputs=[x, y], equation="i,ij->jii")
    np.testing.assert_array_equal(got, on(CPU, raw.Einsum, inputs=[x, y], equation="i,ij->jii"))
    got = on_xpu(raw.Einsum, inputs=[y, whole(4, 5)], equation="ij,jk->kii")
    np.testing.assert_array_equal(got, on(CPU, raw.Einsum, inputs=[y, whole(4, 5)], equation="ij,jk->kii"))
    got = on_xpu(raw.Einsum, inputs=[whole(3, 4, 5)], equation="ijk->iij")
    np.testing.assert_array_equal(got, on(CPU, raw.Einsum, inputs=[whole(3, 4, 5)], equation="ijk->iij"))


@pytest.mark.parametrize(
    "equation", ["abc,cde->abde", "aecd,abcd->acbe", "aab,bc->ac", "...ab,...bc->...ac", "ab,ab->a"]
)
def test_einsum_gradients(equation):
    shapes = {e: (a, b) for e, a, b in EINSUMS}[equation]
    x, y = (tf.constant(whole(*s)) for s in shapes)

    def gradients(device):
        with tf.device(device), tf.GradientTape() as tape:
            tape.watch([x, y])
            z = tf.einsum(equation, x, y)
            loss = tf.reduce_sum(z * tf.cast(tf.reshape(tf.range(tf.size(z)) % 5, tf.shape(z)), tf.float32))
        return tape.gradient(loss, [x, y])

    for got, want in zip(gradients(XPU), gradients(CPU)):
        np.testing.assert_array_equal(got, want)


# --- MatMul ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["BatchMatMulV2", "BatchMatMulV3"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.complex64, tf.int32, tf.int64, tf.bfloat16])
@pytest.mark.parametrize(
    ("a", "b"),
    [((), ()), ((3,), (1,)), ((1,), (3,)), ((2, 1), (3,)), ((), (4,)), ((5, 4), ()), ((0,), (1,)), ((3, 2), (1, 2))],
)
def test_batches_broadcast(op, dtype, a, b):
    for adj_x, adj_y in itertools.product([False, True], repeat=2):
        x = whole(*a, *((5, 7) if adj_x else (7, 5)))
        y = whole(*b, *((3, 5) if adj_y else (5, 3)), seed=1)
        if dtype.is_complex:
            x, y = x + 1j * whole(*x.shape, seed=2), y - 1j * whole(*y.shape, seed=3)
        want = np.matmul(
            np.conj(np.swapaxes(x, -1, -2)) if adj_x else x, np.conj(np.swapaxes(y, -1, -2)) if adj_y else y
        )
        kwargs = {"Tout": dtype} if op == "BatchMatMulV3" else {}
        with tf.device(XPU):
            got = getattr(raw, op)(x=tf.cast(x, dtype), y=tf.cast(y, dtype), adj_x=adj_x, adj_y=adj_y, **kwargs)
        if dtype == tf.bfloat16:
            want = tf.cast(want, tf.bfloat16)  # exact sums, rounded once
        np.testing.assert_array_equal(tf.cast(got, tf.complex128), tf.cast(want, tf.complex128))


@needs("bytes")
@pytest.mark.parametrize("types", [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 300, 200), (5, 1100, 65), (70, 33, 130)])
def test_bytes_make_integers(types, rows, terms, columns):
    """Sums of the extremes leave what float32 counts exactly."""
    random = np.random.default_rng(0)
    x, y = (
        random.choice([np.iinfo(dtype).min, np.iinfo(dtype).max, 3], shape).astype(dtype)
        for dtype, shape in zip(types, [(2, rows, terms), (terms, columns)])
    )
    with tf.device(XPU):
        got = raw.BatchMatMulV3(x=x, y=y, Tout=tf.int32)
        turned = raw.BatchMatMulV3(x=x, y=y.T, Tout=tf.int32, adj_y=True)
    assert "XPU" in got.backing_device
    for product in (got, turned):
        np.testing.assert_array_equal(product, np.matmul(x.astype(np.int64), y.astype(np.int64)))
