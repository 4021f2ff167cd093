"""Runs one case on two devices, eagerly and in a tf.function, each twice, and compares."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

REDUCED = {tf.float16, tf.bfloat16}

# Largest |xpu - cpu| accepted, relative and absolute, for tolerance scale 1.
TOLERANCES = {
    tf.float16: 2e-3,
    tf.bfloat16: 1.6e-2,
    tf.float32: 4e-6,
    tf.complex64: 4e-6,
    tf.float64: 1e-13,
    tf.complex128: 1e-13,
}


class Rng:
    """Makes the inputs of a case: always the same ones for the same case."""

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)

    def uniform(self, shape, dtype: tf.DType, low=-3.0, high=3.0) -> tf.Tensor:
        """Uniform in [low, high): integers are whole, unsigned ones start at 0, bool takes both values."""
        if dtype == tf.bool:
            return tf.constant(self._rng.integers(0, 2, shape).astype(bool))
        if dtype.is_integer:
            low = max(low, dtype.min)
            return tf.cast(tf.constant(np.floor(self._rng.uniform(low, high, shape))), dtype)
        values = self._rng.uniform(low, high, shape)
        if dtype.is_complex:
            values = values + 1j * self._rng.uniform(low, high, shape)
        return tf.cast(tf.constant(values), dtype)

    def ints(self, shape, low: int, high: int, dtype: tf.DType = tf.int64) -> tf.Tensor:
        """Integers in [low, high)."""
        return tf.constant(self._rng.integers(low, high, shape), dtype)

    def permutation(self, n: int, dtype: tf.DType = tf.int64) -> tf.Tensor:
        return tf.constant(self._rng.permutation(n), dtype)


@dataclasses.dataclass(frozen=True)
class Var:
    """An argument that is a resource variable with this value; the op's effect on it is compared as an output."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to call an op.

    make: (types, rng) -> keyword arguments of tf.raw_ops.<Op>; `types` maps the op's type attributes to dtypes.
    tolerance: multiplies TOLERANCES (long accumulations, ill-conditioned functions).
    compare: "close"; "bits" for equality; "moments" for random values (mean and deviation agree).
    expect: the right outputs for the arguments, where TensorFlow's CPU kernel answers something else.
    outputs: how many leading outputs to compare; None for all.
    """

    make: Callable[[dict, Rng], dict]
    tolerance: float = 1.0
    compare: str = "close"
    outputs: int | None = None
    expect: Callable[[dict], list] | None = None
    types: tuple = ()  # only for these dtypes of the first constrained attribute; empty: all


def _call(op: str, kwargs: dict, device: str) -> list:
    """Runs raw op `op` on `device`; variables are made there first and their values appended to the outputs."""
    with tf.device(device):
        variables = {k: tf.Variable(v.value) for k, v in kwargs.items() if isinstance(v, Var)}
        args = {k: variables[k].handle if k in variables else v for k, v in kwargs.items()}
        out = getattr(tf.raw_ops, op)(**args)
        values = [v.read_value() for v in variables.values()]
    if out is None or isinstance(out, tf.Operation):
        out = []
    flat = tf.nest.flatten(tuple(out) if hasattr(out, "_fields") else out)
    return list(flat) + values


def _call_in_graph(op: str, calls: list[dict], device: str, times: int) -> list[list[list]]:
    """The same for many keyword arguments, all in one tf.function, `times` times, with fresh variables each time.

    In one: to trace, optimise and start a graph takes ten times as long as to run an op in it.
    """
    with tf.device(device):
        variables = [{k: tf.Variable(v.value) for k, v in kwargs.items() if isinstance(v, Var)} for kwargs in calls]

    def one(kwargs, variables, tensors) -> list:
        args = {k: variables[k].handle if k in variables else tensors.get(k, v) for k, v in kwargs.items()}
        out = getattr(tf.raw_ops, op)(**args)
        if out is None or isinstance(out, tf.Operation):
            with tf.control_dependencies([out] if out is not None else []):
                return [v.read_value() for v in variables.values()]
        flat = tf.nest.flatten(tuple(out) if hasattr(out, "_fields") else out)
        with tf.control_dependencies(flat):
            return list(flat) + [v.read_value() for v in variables.values()]

    @tf.function(autograph=False)
    def run(tensors):
        with tf.device(device):
            return [one(*call) for call in zip(calls, variables, tensors)]

    tensors = [{k: v for k, v in kwargs.items() if _is_tensor(v)} for kwargs in calls]
    results = []
    for _ in range(times):
        for kwargs, its_variables in zip(calls, variables):
            for k, v in its_variables.items():
                v.assign(kwargs[k].value)
        results.append(run(tensors))
    return results


def _is_tensor(v) -> bool:
    return isinstance(v, tf.Tensor) or (
        isinstance(v, (list, tuple)) and bool(v) and all(isinstance(x, tf.Tensor) for x in v)
    )


def _map_tensors(kwargs: dict, f) -> dict:
    def one(v):
        if isinstance(v, Var):
            return Var(f(tf.convert_to_tensor(v.value)))
        if isinstance(v, tf.Tensor):
            return f(v)
        if _is_tensor(v):
            return [f(x) for x in v]
        return v

    return {k: one(v) for k, v in kwargs.items()}


# Where the CPU has no kernel for a type, it computes in this one.
SUBSTITUTES = {
    tf.float16: tf.float32,
    tf.bfloat16: tf.float32,
    tf.float64: tf.float32,
    **dict.fromkeys((tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64), tf.int32),
}


def _expected(op: str, kwargs: dict) -> list:
    """The CPU's answer; where it has no kernel for a type, that of its kernel for the nearest type it has."""
    try:
        return _call(op, kwargs, "/cpu:0")
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.UnimplementedError) as error:
        substitutes = _map_tensors(kwargs, lambda t: tf.cast(t, SUBSTITUTES.get(t.dtype, t.dtype)))
        substitutes = {k: SUBSTITUTES.get(v, v) if isinstance(v, tf.DType) else v for k, v in substitutes.items()}
        try:
            return _call(op, substitutes, "/cpu:0")
        except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
            raise error from None


def _to_numpy(t) -> np.ndarray:
    t = tf.convert_to_tensor(t)
    if t.dtype in REDUCED:
        t = tf.cast(t, tf.float32)
    return t.numpy()


def _check(case: Case, got: list, want: list, what: str) -> float:
    """Returns the largest error as a fraction of what is allowed."""
    n = len(want) if case.outputs is None else case.outputs
    assert len(got) >= n, f"{what}: {len(got)} outputs, expected {n}"
    worst = 0.0
    for i in range(n):
        g, w = got[i], want[i]
        assert g.shape == w.shape, f"{what}: output {i} has shape {g.shape}, expected {w.shape}"
        # The wider error of the two types: the CPU may have answered in another one.
        dtype = max(g.dtype, w.dtype, key=lambda t: TOLERANCES.get(t, 0.0))
        a, b = _to_numpy(g), _to_numpy(w)
        if case.compare == "moments":
            np.testing.assert_allclose(a.mean(), b.mean(), atol=0.1 * b.std() + 1e-6, err_msg=what)
            np.testing.assert_allclose(a.std(), b.std(), rtol=0.15, err_msg=what)
            continue
        if case.compare == "bits" or dtype not in TOLERANCES:
            np.testing.assert_array_equal(a, b, err_msg=f"{what}: output {i}")
            continue
        tolerance = TOLERANCES[dtype] * case.tolerance
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"{what}: output {i}")
        finite = np.isfinite(a) & np.isfinite(b)
        if finite.any():
            error = np.abs(a[finite] - b[finite]) / (tolerance * (1 + np.abs(b[finite])))
            worst = max(worst, float(error.max()))
    return worst


@contextlib.contextmanager
def hard_placement():
    """Soft placement off: an op without a kernel on the device fails instead of moving to the CPU."""
    saved = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(False)
    try:
        yield
    finally:
        tf.config.set_soft_device_placement(saved)


@contextlib.contextmanager
def nothing_folded():
    """Constant folding off: it replaces ops of which it knows the result, wrongly (0) OnesLike of uint32 and uint64."""
    saved = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"constant_folding": False})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"constant_folding": True, **saved})


@dataclasses.dataclass(frozen=True)
class Call:
    """A case of an op with the types that it is called with, and the seed of its inputs."""

    op: str
    case: Case
    types: dict
    seed: int

    def __str__(self) -> str:
        return f"{self.op}({', '.join(f'{a}={t.name}' for a, t in self.types.items())})"


# So many calls share a tf.function.
CALLS_PER_GRAPH = 64


def run_calls(op: str, calls: list[Call], device: str = "/xpu:0") -> float:
    """Runs calls of one op on `device` and on the CPU, eagerly and in a graph, twice each.

    Returns the largest error as a fraction of the tolerance. Raises AssertionError on any difference.
    """
    return max(_run_calls(op, calls[i : i + CALLS_PER_GRAPH], device) for i in range(0, len(calls), CALLS_PER_GRAPH))


def _run_calls(op: str, calls: list[Call], device: str) -> float:
    with tf.device("/cpu:0"):
        inputs = [call.case.make(call.types, Rng(call.seed)) for call in calls]
    worst = 0.0
    with hard_placement(), nothing_folded():
        wanted = []
        for call, kwargs in zip(calls, inputs):
            wanted.append(call.case.expect(kwargs) if call.case.expect else _expected(op, kwargs))
            for time in (1, 2):
                got = _call(op, kwargs, device)
                worst = max(worst, _check(call.case, got, wanted[-1], f"{call} eager, run {time}"))
        try:
            results = _call_in_graph(op, inputs, device, 2)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            for call, kwargs in zip(calls, inputs):  # which one was it?
                try:
                    _call_in_graph(op, [kwargs], device, 2)
                except (tf.errors.OpError, ValueError, TypeError) as its_error:
                    raise AssertionError(f"{call} in a tf.function: {its_error}") from its_error
            raise AssertionError(f"{op} in a tf.function with {len(calls)} calls, not with one: {error}") from error
        for time, all_got in enumerate(results, 1):
            for call, got, want in zip(calls, all_got, wanted):
                worst = max(worst, _check(call.case, list(got), want, f"{call} in a tf.function, run {time}"))
    return worst
