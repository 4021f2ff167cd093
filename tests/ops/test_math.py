"""The elementwise ops, reductions and variable updates at their edges: bad arguments, special values, aliasing.

Ordinary values of every op and type are the sweep's business (tests/sweep).
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops
INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True)
def _on_xpu(xpu_device):
    with hard_placement(), tf.device(xpu_device):
        yield


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def flags(*shape):
    return np.ones(shape, bool)


def variable(*shape):
    return tf.Variable(ones(*shape)).handle


def momentum(var=(2,), accum=(2,), lr=(), grad=(2,), m=()):
    return lambda: raw.ResourceApplyMomentum(
        var=variable(*var), accum=variable(*accum), lr=ones(*lr), grad=ones(*grad), momentum=ones(*m)
    )


def same_variable_twice():
    v = variable(2)
    raw.ResourceApplyMomentum(var=v, accum=v, lr=ones(), grad=ones(2), momentum=ones())


def clip(x=(2, 3), low=(), high=()):
    return lambda: raw.ClipByValue(t=ones(*x), clip_value_min=ones(*low), clip_value_max=ones(*high))


def integers(op, a, b, dtype=np.int64):
    return lambda: getattr(raw, op)(x=np.array([a], dtype), y=np.array([b], dtype))


BAD = [
    (lambda: raw.AddV2(x=ones(2, 3), y=ones(4)), r"Incompatible shapes: \[2,3\] vs. \[4\]"),
    (lambda: raw.Mul(x=ones(2, 0), y=ones(2, 3)), r"Incompatible shapes: \[2,0\] vs. \[2,3\]"),
    (lambda: raw.Equal(x=ones(2, 3), y=ones(4)), r"Incompatible shapes: \[2,3\] vs. \[4\]"),
    (lambda: raw.Complex(real=ones(2, 3), imag=ones(4)), r"Incompatible shapes: \[2,3\] vs. \[4\]"),
    (lambda: raw.ApproximateEqual(x=ones(2, 3), y=ones(4)), r"x shape: \[2,3\]. y shape: \[4\]"),
    (lambda: raw.SigmoidGrad(y=ones(2, 3), dy=ones(5)), "must have same number of elements, got 6 and 5"),
    (lambda: raw.ReluGrad(gradients=ones(2, 3), features=ones(6)), r"Input 0: \[2,3\] != input 1: \[6\]"),
    (integers("Div", 1, 0), "Integer division by zero"),
    (integers("FloorDiv", 1, 0, np.uint8), "Integer division by zero"),
    (integers("FloorMod", 1, 0), "Integer division by zero"),
    (integers("TruncateMod", 1, 0), "Integer division by zero"),
    (integers("TruncateDiv", 1, 0, np.int32), "Integer division by zero"),
    (integers("Pow", 2, -1), "Integers to negative integer powers are not allowed"),
    (
        lambda: raw.SelectV2(condition=flags(2, 3), t=ones(4), e=ones(2)),
        r"condition \[2,3\], then \[4\], and else \[2\] must be broadcastable",
    ),
    (lambda: raw.Select(condition=flags(2), x=ones(4, 2), y=ones(4, 2)), "but saw: 4 vs. 2"),
    (lambda: raw.Select(condition=flags(), x=ones(2, 2), y=ones(2, 3)), r"but received: \[2,2\] vs. \[2,3\]"),
    (lambda: raw.Select(condition=flags(2, 2), x=ones(4, 2), y=ones(4, 2)), r"Input 0: \[2,2\] != input 1: \[4,2\]"),
    (lambda: raw.Select(condition=flags(1), x=ones(), y=ones()), "'then' must be at least a vector"),
    (clip(low=(4,)), r"clip_value_min shape: \[4\]"),
    (clip(high=(1,)), r"clip_value_max shape: \[1\]"),
    (lambda: raw.AddN(inputs=[ones(2), ones(3)]), r"Input 0: \[2\] != input 1: \[3\]"),
    (lambda: raw.BiasAdd(value=ones(2, 3), bias=ones(4)), r"\[4\] vs. \[2,3\]"),
    (lambda: raw.BiasAdd(value=ones(3), bias=ones(3)), r"must be at least 2D: \[3\]"),
    (lambda: raw.BiasAdd(value=ones(3, 3), bias=ones(3, 1)), r"Biases must be 1D: \[3,1\]"),
    (lambda: raw.BiasAddGrad(out_backprop=ones(3)), r"must be at least 2D: \[3\]"),
    (lambda: raw.Fill(dims=[-2], value=ones()), "Dimension -2 must be >= 0"),
    (lambda: raw.Fill(dims=[2], value=ones(2)), r"value must represent a scalar, got shape \[2\]"),
    (lambda: raw.Sum(input=ones(2, 3), axis=[2]), "Invalid reduction dimension"),
    (lambda: raw.Max(input=ones(2, 3), axis=[0, -2]), "duplicate dimension: 0"),
    (lambda: raw.ArgMax(input=ones(2, 3), dimension=2), r"in the range \[-2, 2\), but got 2"),
    (lambda: raw.ArgMin(input=ones(0, 3), dimension=0), r"Reduction axis 0 is empty in shape \[0,3\]"),
    (
        lambda: raw.AssignAddVariableOp(resource=variable(2), value=ones(3)),
        r"shape \[2\] using a Tensor with shape \[3\]",
    ),
    (lambda: raw.AssignSubVariableOp(resource=variable(2), value=ones(2, dtype=np.float64)), "(?i)dtype"),
    (momentum(accum=(3,)), r"var and accum do not have the same shape\[2\] \[3\]"),
    (momentum(grad=(3,)), r"var and grad do not have the same shape\[2\] \[3\]"),
    (momentum(lr=(1,)), r"lr is not a scalar: \[1\]"),
    (momentum(m=(2,)), r"momentum is not a scalar: \[2\]"),
    (same_variable_twice, "var and accum are the same variable"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m[:40] for _, m in BAD])
def test_bad_arguments_are_named(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize(
    ("values", "v1", "v2"),
    [
        ([NAN], "NaN", "NaN"),
        ([1, INF], "Inf", r"\+Inf"),
        ([INF, -INF], "Inf", r"-Inf and \+Inf"),
        ([0, NAN, -INF], "Inf and NaN", "-Inf and NaN"),
        ([NAN, INF, -INF], "Inf and NaN", r"-Inf, \+Inf, and NaN"),
    ],
)
def test_check_numerics(dtype, values, v1, v2):
    x = tf.cast(np.float64(values), dtype)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"here : Tensor had {v1} values"):
        raw.CheckNumerics(tensor=x, message="here")
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"here : Tensor had {v2} values"):
        raw.CheckNumericsV2(tensor=x, message="here")


def test_a_failed_op_leaves_the_device_usable():
    with pytest.raises(tf.errors.InvalidArgumentError):
        integers("Div", 1, 0)()
    np.testing.assert_array_equal(raw.Div(x=np.int64([7, -7]), y=np.int64([2, 2])), [3, -3])


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 7.0, -30.0, 30.0, -200.0, 200.0, INF, -INF, NAN], np.float32)


def same_as_cpu(call, rtol=2e-6):
    got = call()
    with tf.device("/cpu:0"):
        want = call()
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(tf.cast(got, tf.float64), tf.cast(want, tf.float64), rtol=rtol, atol=1e-30)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_what_is_nearest_to_one_is_one(dtype):
    """Programs round it down, and divide by its distance from one."""
    x = tf.constant([40.0, 100.0, 3e4, INF], dtype)
    for function in (tf.tanh, tf.math.erf, tf.sigmoid):
        np.testing.assert_array_equal(function(x), [1.0] * 4)
    np.testing.assert_array_equal(tf.tanh(-x), [-1.0] * 4)


@pytest.mark.parametrize("op", ["Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"])
def test_activations_of_special_values(op):
    same_as_cpu(lambda: getattr(raw, op)(features=SPECIAL))


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 1e-30, 0.3, 1.0, 1.5, INF])
def test_leaky_rectifier_of_special_values(alpha):
    same_as_cpu(lambda: raw.LeakyRelu(features=SPECIAL, alpha=alpha))


@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad"])
def test_gradients_of_special_values(op):
    gradients, features = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    same_as_cpu(lambda: getattr(raw, op)(gradients=gradients, features=features))


@pytest.mark.parametrize("op", ["EluGrad", "SeluGrad"])
def test_gradients_by_outputs_of_special_values(op):
    gradients, outputs = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    same_as_cpu(lambda: getattr(raw, op)(gradients=gradients, outputs=outputs))


OPS_OF_TWO = """DivNoNan MulNoNan Xdivy Xlogy Xlog1py FloorDiv FloorMod TruncateDiv Mod Maximum Minimum Pow
    SquaredDifference Less GreaterEqual Equal NotEqual"""


@pytest.mark.parametrize("op", OPS_OF_TWO.split())
def test_pairs_of_special_values(op):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    same_as_cpu(lambda: getattr(raw, op)(x=x, y=y))


@pytest.mark.parametrize("low", [-1.0, 2.0, NAN])
@pytest.mark.parametrize("high", [1.0, NAN, INF])
def test_clip_with_odd_bounds(low, high):
    same_as_cpu(lambda: raw.ClipByValue(t=SPECIAL, clip_value_min=np.float32(low), clip_value_max=np.float32(high)))


def test_rounding_to_even():
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32)
    for op in (raw.Round, raw.Rint):
        np.testing.assert_array_equal(op(x=halves), [0, 2, 2, 0, -2, -2])
    # An integer is its own nearest integer (TensorFlow 2.21 answers 0 on the CPU).
    for dtype in (np.int32, np.int64):
        np.testing.assert_array_equal(raw.Round(x=np.array([5, -3], dtype)), [5, -3])


def test_incompatible_shapes_may_be_an_answer():
    arguments = {"x": ones(2, 3), "y": ones(4), "incompatible_shape_error": False}
    assert not raw.Equal(**arguments).numpy()
    assert raw.NotEqual(**arguments).numpy()
    assert raw.Equal(**arguments).shape == ()


@pytest.mark.parametrize("source", [tf.float16, tf.float32, tf.float64])
@pytest.mark.parametrize("target", [tf.float16, tf.bfloat16, tf.float32])
def test_truncating_cast(source, target):
    values = np.array([1.9999999, -1.9999999, 3.1415926535, 65519.0, 1e-6, 0.1, INF, -INF, NAN, 0.0])
    x = tf.cast(values, source)
    same_as_cpu(lambda: raw.Cast(x=x, DstT=target, Truncate=True), rtol=0)


def test_truncating_cast_of_complex():
    x = tf.constant([1.99999999999 + 3.1415926535j, -0.1 - 1e-6j], tf.complex128)
    got = raw.Cast(x=x, DstT=tf.complex64, Truncate=True)
    with tf.device("/cpu:0"):
        want = raw.Cast(x=x, DstT=tf.complex64, Truncate=True)
    np.testing.assert_array_equal(got, want)
    assert np.real(got)[0] < 2


def test_int32_stays_in_host_memory():
    """Results of int32 ops come back without a copy from the device; a cast to another type moves there."""
    x = tf.constant([5, -7, 9])
    assert raw.Pow(x=x, y=tf.constant([2, 2, 0])).numpy().tolist() == [25, 49, 1]
    assert raw.Sum(input=x, axis=[0]).numpy() == 7
    assert raw.BitwiseAnd(x=x, y=tf.constant(3)).numpy().tolist() == [1, 1, 1]
    assert raw.SelectV2(condition=x > 0, t=x, e=-x).numpy().tolist() == [5, 7, 9]
    assert raw.Cast(x=x, DstT=tf.float32).numpy().tolist() == [5.0, -7.0, 9.0]
    assert raw.Cast(x=tf.constant([1.9, -1.9]), DstT=tf.int32).numpy().tolist() == [1, -1]
    assert raw.Fill(dims=tf.constant([2], tf.int64), value=x[0]).numpy().tolist() == [5, 5]


@pytest.mark.parametrize("target", [tf.uint8, tf.int8, tf.uint16, tf.int16])
@pytest.mark.parametrize("source", [tf.float32, tf.float64, tf.float16, tf.bfloat16])
def test_casts_saturate_as_on_the_cpu(source, target):
    """A picture's pixel that is a little too bright stays bright. TensorFlow's CPU has it so in whole vectors."""
    large = [] if target == tf.uint8 else [40000.0, 70000.0]  # zeros there, of some types
    x = tf.repeat(tf.constant([-300.0, -1.0, 3.5, 128.0, 256.0, *large, 3e9, NAN, INF, -INF]), 64)
    same_as_cpu(lambda: tf.cast(tf.cast(x, source), target)[32::64], rtol=0)


def test_bitcast_changes_the_shape():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    halves = raw.Bitcast(input=x, type=tf.uint16)
    assert halves.shape == (2, 2, 2)
    np.testing.assert_array_equal(raw.Bitcast(input=halves, type=tf.float32), x)
    assert raw.Bitcast(input=x, type=tf.int32).numpy().tolist() == x.numpy().view(np.int32).tolist()


@pytest.mark.parametrize("n", [2, 15, 16, 17, 31, 32, 100])
def test_add_n_of_many(n):
    x = np.random.default_rng(n).integers(-9, 9, (n, 5)).astype(np.float32)
    np.testing.assert_array_equal(raw.AddN(inputs=list(x)), x.sum(0))


def test_add_reuses_its_input():
    """Collective ops require it of Add and Div."""

    @tf.function(autograph=False)
    def chain(x):
        y = x * 2.0
        for _ in range(4):
            y = raw.Add(x=y, y=x)
            y = raw.Div(x=y, y=tf.constant(1.0))
        return y

    np.testing.assert_array_equal(chain(tf.ones([1000])), np.full(1000, 6.0, np.float32))


def test_update_does_not_change_values_read_before():
    v = tf.Variable(ones(100))
    before = v.read_value()
    v.assign_add(ones(100))
    v.assign_sub(3 * ones(100))
    np.testing.assert_array_equal(before, ones(100))
    np.testing.assert_array_equal(v, -ones(100))


def test_update_by_its_own_value():
    v = tf.Variable(ones(100))
    v.assign_add(v)
    v.assign_add(v.read_value())
    np.testing.assert_array_equal(v, 4 * ones(100))


def test_optimizer_step_does_not_change_values_read_before():
    v, accum = tf.Variable(ones(7)), tf.Variable(ones(7))
    before = v.read_value()
    for _ in range(2):
        raw.ResourceApplyMomentum(var=v.handle, accum=accum.handle, lr=ones(), grad=before, momentum=ones())
    np.testing.assert_array_equal(before, ones(7))
    np.testing.assert_array_equal(v, ones(7) * (1 - 2 - 3))


def test_adagrad_may_keep_its_slots():
    v, accum = tf.Variable(ones(3)), tf.Variable(4 * ones(3))
    raw.ResourceApplyAdagrad(var=v.handle, accum=accum.handle, lr=ones(), grad=ones(3), update_slots=False)
    np.testing.assert_array_equal(accum, 4 * ones(3))
    np.testing.assert_allclose(v, 0.5 * ones(3), rtol=1e-6)


def test_empty_reductions():
    empty = tf.zeros([0, 3])
    np.testing.assert_array_equal(raw.Sum(input=empty, axis=[0]), [0, 0, 0])
    np.testing.assert_array_equal(raw.Prod(input=empty, axis=[0]), [1, 1, 1])
    np.testing.assert_array_equal(raw.Max(input=empty, axis=[0]), [-INF] * 3)
    np.testing.assert_array_equal(raw.Mean(input=empty, axis=[0]), [NAN] * 3)
    assert raw.Sum(input=empty, axis=[1]).shape == (0,)
    assert raw.L2Loss(t=empty).numpy() == 0


def test_l2_loss_of_half_adds_in_float():
    x = tf.fill([5000], tf.cast(1e-2, tf.float16))
    np.testing.assert_allclose(tf.cast(raw.L2Loss(t=x), tf.float32), 0.25, rtol=2e-3)


def test_norm_of_nothing_reduced_is_positive():
    np.testing.assert_array_equal(raw.EuclideanNorm(input=-ones(2, 1), axis=[1]), [1, 1])


def test_reductions_nan():
    x = np.float32([1, NAN, 2])
    for op in ("Sum", "Mean", "Prod", "Max", "Min"):
        assert np.isnan(getattr(raw, op)(input=x, axis=[0]))


def test_count_up_to():
    v = tf.Variable(tf.constant(40, tf.int64))
    before = v.read_value()
    assert [raw.ResourceCountUpTo(resource=v.handle, limit=42, T=tf.int64).numpy() for _ in range(2)] == [40, 41]
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 42"):
        raw.ResourceCountUpTo(resource=v.handle, limit=42, T=tf.int64)
    assert (before.numpy(), v.numpy()) == (40, 42)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input is not a scalar: \[1\]"):
        raw.ResourceCountUpTo(resource=tf.Variable([tf.int64.max]).handle, limit=42, T=tf.int64)
