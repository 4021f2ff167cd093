"""Runs cases on two devices, eagerly and in a tf.function, each twice, and compares (rounding.py says how closely)."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.sweep import rounding, sessions
from tests.sweep.rounding import COMPUTED_IN, FORMATS


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


# Case.relative_to: see rounding.py.
CONDITION, ABSOLUTE = "condition", "absolute"


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to call an op.

    make: (types, rng) -> keyword arguments of tf.raw_ops.<Op>; `types` maps the op's type attributes to dtypes.
    roundings, relative_to: n and m of rounding.py. The first may be a function of the arguments. The second is
        CONDITION, ABSOLUTE, or the name of another op to take the absolute values' result of. It may be a function of
        (arguments as double, exact outputs) that gives an array per output.
    stored: each of the n roundings is to the output's type: an op that updates an element of a buffer again and again.
    compare: "close"; "bits" for equality with the CPU's own result in the same type, call by call for `stateful` ops.
        Those may have a function of both results instead that raises AssertionError.
    expect: the right outputs for the arguments, where TensorFlow's CPU kernel answers something else.
    check: instead of a comparison: is given the outputs of all calls, a list of arrays for each.
    outputs: how many leading outputs to compare; None for all.
    """

    make: Callable[[dict, Rng], dict]
    roundings: float | Callable[[dict], float] = 4.0
    relative_to: str | Callable[[dict, list], list] = CONDITION
    stored: bool = False
    compare: str | Callable[[np.ndarray, np.ndarray], None] = "close"
    outputs: int | None = None
    expect: Callable[[dict], list] | None = None
    check: Callable[[list[list[np.ndarray]]], None] | None = None
    stateful: bool = False
    types: tuple = ()  # only for these dtypes of the first constrained attribute; empty: all


def _outputs_of(out) -> list:
    if out is None or isinstance(out, tf.Operation):
        return []
    return tf.nest.flatten(tuple(out) if hasattr(out, "_fields") else out)


def _call(op: str, kwargs: dict, device: str) -> list:
    """Runs raw op `op` on `device`; variables are made there first and their values appended to the outputs."""
    if any(isinstance(v, sessions.Like) for v in kwargs.values()) and device == "/cpu:0":
        op, kwargs = sessions.on_resources(kwargs)
    if sessions.needs_session(kwargs):
        return sessions.run(op, [kwargs], device)[0][0]
    with tf.device(device):
        variables = {k: tf.Variable(v.value) for k, v in kwargs.items() if isinstance(v, Var)}
        args = {k: variables[k].handle if k in variables else v for k, v in kwargs.items()}
        out = getattr(tf.raw_ops, op)(**args)
        return _outputs_of(out) + [v.read_value() for v in variables.values()]


def _call_in_graph(op: str, calls: list[dict], device: str, times: int, label: str = "") -> list[list[list]]:
    """The same for many keyword arguments, all in one tf.function, `times` times, with fresh variables each time.

    In one: to trace, optimise and start a graph takes ten times as long as to run an op in it. `label` chooses among
    the op's kernels.
    """
    if any(map(sessions.needs_session, calls)):
        return sessions.run(op, calls, device, times)
    with tf.device(device):
        variables = [{k: tf.Variable(v.value) for k, v in kwargs.items() if isinstance(v, Var)} for kwargs in calls]

    def one(kwargs, variables, tensors) -> list:
        args = {k: variables[k].handle if k in variables else tensors.get(k, v) for k, v in kwargs.items()}
        with tf.compat.v1.get_default_graph()._kernel_label_map({op: label} if label else {}):
            out = getattr(tf.raw_ops, op)(**args)
        flat = _outputs_of(out)
        with tf.control_dependencies([out] if isinstance(out, tf.Operation) else flat):
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
            return dataclasses.replace(v, value=f(tf.convert_to_tensor(v.value)))
        if isinstance(v, tf.Tensor):
            return f(v)
        if _is_tensor(v):
            return [f(x) for x in v]
        return v

    return {k: one(v) for k, v in kwargs.items()}


DOUBLES = {
    **dict.fromkeys((tf.float16, tf.bfloat16, tf.float32), tf.float64),
    tf.complex64: tf.complex128,
}
REDUCED = dict.fromkeys((tf.float16, tf.bfloat16), tf.float32)
# Where the CPU has no kernel for a type, it computes in this one.
SUBSTITUTES = {
    **REDUCED,
    tf.float64: tf.float32,
    **dict.fromkeys((tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64), tf.int32),
}

NO_KERNEL = (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.UnimplementedError)


def _converted(kwargs: dict, types: dict) -> dict:
    """The arguments in other types, type attributes included."""
    converted = _map_tensors(kwargs, lambda t: tf.cast(t, types.get(t.dtype, t.dtype)))
    return {k: types.get(v, v) if isinstance(v, tf.DType) else v for k, v in converted.items()}


def _native(op: str, kwargs: dict) -> list:
    """The CPU's answer in the case's own types, or in the nearest that it has a kernel for."""
    try:
        return _call(op, kwargs, "/cpu:0")
    except NO_KERNEL as error:
        try:
            return _call(op, _converted(kwargs, SUBSTITUTES), "/cpu:0")
        except NO_KERNEL:
            raise error from None


def _wide(op: str, kwargs: dict, types: dict) -> tuple[dict, list] | None:
    """The arguments in double, or else in float, and the CPU's answer; None if it has neither kernel."""
    for wider in (DOUBLES, REDUCED):
        if not any(t in wider for t in types):
            continue
        arguments = _converted(kwargs, wider)
        with contextlib.suppress(*NO_KERNEL, TypeError):
            return arguments, _call(op, arguments, "/cpu:0")
    return None


class Expected:
    """The expected results of a case: the CPU's own, the exact ones, and how far from these a result may be."""

    def __init__(self, op: str, case: Case, kwargs: dict):
        self._op, self._case, self._kwargs = op, case, kwargs
        self.native = case.expect(kwargs) if case.expect else _native(op, kwargs)
        self.count = len(self.native) if case.outputs is None else case.outputs
        self._wide = None
        if case.compare == "close" and not case.expect and any(t.dtype in FORMATS for t in self.native):
            inputs = tf.nest.flatten([v.value if isinstance(v, Var) else v for v in kwargs.values()])
            self._wide = _wide(op, kwargs, {t.dtype for t in inputs if isinstance(t, tf.Tensor)})
        self._exacts: dict[int, np.ndarray] = {}

    def check(self, got: list, what: str) -> float:
        """The largest error as a fraction of what is allowed. Raises AssertionError if that is more than 1."""
        assert len(got) >= self.count, f"{what}: {len(got)} outputs, expected {self.count}"
        return max((self._check_output(i, got[i], f"{what}: output {i}") for i in range(self.count)), default=0.0)

    def _check_output(self, i: int, got: tf.Tensor, what: str) -> float:
        native = self.native[i]
        assert got.shape == native.shape, f"{what} has shape {got.shape}, expected {native.shape}"
        if self._case.compare == "bits" or got.dtype not in FORMATS:
            np.testing.assert_array_equal(got.numpy(), native.numpy(), err_msg=what)
            return 0.0
        exact = self.exact(i, got.dtype)
        values = rounding.as_double(got)
        d = self._distance(i, values, exact, got.dtype, conditioned=False)
        if d.of_bound > 1 and self._conditioned:
            d = self._distance(i, values, exact, got.dtype, conditioned=True)
        at = d.where
        assert d.wrong == 0, (
            f"{what}: {d.wrong} of {exact.size} elements are wrong, most of all {list(at)}, which is {values[at]}, "
            f"expected {exact[at]}; the error is {d.of_bound:.3g} times what rounding explains"
        )
        if d.of_unit > rounding.UNITS and native.dtype == got.dtype and self._wide is not None:
            conditioned = self._conditioned
            d = self._distance(i, values, exact, got.dtype, conditioned)
            cpu = self._distance(i, rounding.as_double(native), exact, got.dtype, conditioned).of_unit
            assert d.of_unit <= max(2 * cpu, rounding.UNITS), (
                f"{what}: an error of {d.of_unit:.3g} roundings, more than twice the CPU's own, {cpu:.3g}"
            )
        return d.of_bound

    @property
    def _conditioned(self) -> bool:
        return self._case.relative_to is CONDITION and self._roundings() > 0

    def exact(self, i: int, dtype: tf.DType) -> np.ndarray:
        if i not in self._exacts:
            source = self.native[i] if self._wide is None else self._wide[1][i]
            self._exacts[i] = rounding.round_to(rounding.as_double(source), dtype)
        return self._exacts[i]

    def _roundings(self) -> float:
        n = self._case.roundings
        return n(self._kwargs) if callable(n) else n

    def wide(self, i: int) -> np.ndarray | None:
        """Output i from arguments in a wider type; None if the CPU has none."""
        return None if self._wide is None else rounding.as_double(self._wide[1][i])

    def in_roundings(self, i: int, t: tf.Tensor) -> np.ndarray:
        """How far output i lies from the exact one, where both are numbers.

        The unit is one rounding of what the analysis says that roundings are relative to, and the output's own.
        """
        exact = self.exact(i, t.dtype)
        _, one = self._bounds(i, exact, t.dtype, self._conditioned)
        with np.errstate(invalid="ignore"):
            error = np.abs(rounding.as_double(t) - exact)
        return (error / one)[np.isfinite(error)]

    def allowed(self, i: int, dtype: tf.DType) -> np.ndarray:
        """How far from the exact one each element of output i may be, at most."""
        return self._bounds(i, self.exact(i, dtype), dtype, self._conditioned)[0]

    def _bounds(self, i, exact, dtype, conditioned) -> tuple[np.ndarray, np.ndarray]:
        """The error that the roundings explain, and one of them."""
        finite = np.where(np.isfinite(exact), np.abs(exact), 0.0)
        n = self._roundings()
        roundoff = (FORMATS if self._case.stored else COMPUTED_IN)[dtype].roundoff
        # The reference has errors of its own unless it was computed more precisely than the result.
        reference = self._wide[1][i].dtype if self._wide is not None else self.native[i].dtype
        own = COMPUTED_IN[reference].roundoff
        if not self._case.expect and own * 2**8 > roundoff:
            roundoff += own
        relative = finite
        if n and self._case.relative_to is not CONDITION:
            relative = np.maximum(finite, self._magnitudes[i])
        elif n and conditioned:
            relative = finite + self._magnitudes[i]
        return rounding.bound(exact, dtype, n * roundoff * relative), rounding.bound(exact, dtype, roundoff * relative)

    def _distance(self, i, values, exact, dtype, conditioned) -> rounding.Distance:
        allowed, units = self._bounds(i, exact, dtype, conditioned)
        return rounding.distance(values, exact, allowed, units)

    @functools.cached_property
    def _magnitudes(self) -> list[np.ndarray]:
        """m of rounding.py, for each output."""
        arguments, exact = self._wide if self._wide is not None else (self._kwargs, self.native)
        how = self._case.relative_to
        if how is CONDITION:
            return _conditions(self._op, arguments, exact)
        exact = [rounding.as_double(t) if t.dtype in FORMATS else t.numpy() for t in exact]
        if callable(how):
            return how({k: _to_numpy(v) for k, v in arguments.items()}, exact)
        absolute = _map_tensors(arguments, lambda t: tf.cast(tf.abs(t), t.dtype) if t.dtype in FORMATS else t)
        result = _native(self._op if how is ABSOLUTE else how, absolute)
        return [np.abs(rounding.as_double(t)) if t.dtype in FORMATS else None for t in result]


def _conditions(op: str, arguments: dict, exact: list) -> list[np.ndarray]:
    """sum_i |x_i df/dx_i|, by differences: each floating argument as a whole made a little larger."""
    step = 2.0**-20 if all(t.dtype in (tf.float64, tf.complex128) for t in exact if t.dtype in FORMATS) else 2.0**-10
    sums = [np.zeros(t.shape) for t in exact]

    def grown(v):
        return tf.cast(v * (1 + step), v.dtype) if v.dtype in FORMATS else v

    for name in arguments:
        changed = {**arguments, name: _map_tensors({name: arguments[name]}, grown)[name]}
        if changed[name] is arguments[name]:
            continue
        for total, before, after in zip(sums, exact, _native(op, changed)):
            if before.dtype in FORMATS:
                with np.errstate(invalid="ignore"):
                    difference = np.abs(rounding.as_double(after) - rounding.as_double(before)) / step
                total += np.where(np.isfinite(difference), difference, 0.0)
    return sums


def _to_numpy(v):
    v = v.value if isinstance(v, Var) else v
    return v.numpy() if isinstance(v, tf.Tensor) else v


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
        return f"{self.op}({', '.join(f'{a}={t.name}' for a, t in self.types.items())}), case {self.seed}"


def calls_of(op: str, cases: list[Case], types: dict) -> list[Call]:
    """Those of the cases that are for these types."""
    first = next(iter(types.values()), None)
    return [Call(op, case, types, i) for i, case in enumerate(cases) if not case.types or first in case.types]


class Prepared:
    """A call with its arguments, and what is expected of it."""

    def __init__(self, call: Call):
        self.call, self.op, self.case = call, call.op, call.case
        # On the CPU, conversions too: what is expected owes nothing to the device under test.
        with tf.device("/cpu:0"), hard_placement():
            self.kwargs = self.case.make(call.types, Rng(call.seed))
            self._expected = (
                None if self.case.check or self.case.stateful else Expected(self.op, self.case, self.kwargs)
            )

    def run_eagerly(self, device: str, times: int = 2) -> float:
        """Calls the op; see compare. (Where several results are compared with each other, there have to be two.)"""
        with hard_placement(), nothing_folded():
            times = max(times, 2) if self.case.check else 1 if sessions.needs_session(self.kwargs) else times
            runs = [_call(self.op, self.kwargs, device) for _ in range(times)]
            cpu = [_call(self.op, self.kwargs, "/cpu:0") for _ in range(times)] if self.case.stateful else None
        return self.compare(runs, cpu, "eager")

    def native(self) -> list[tf.Tensor]:
        """The CPU's own results that are compared."""
        return self._expected.native[: self._expected.count]

    def exact(self) -> list[np.ndarray]:
        """The same as they should be."""
        return [self._expected.exact(i, t.dtype) for i, t in enumerate(self.native())]

    def compare(self, runs: list[list], cpu: list[list] | None, mode: str) -> float:
        """The largest error as a fraction of what is allowed. Raises AssertionError if it is too large.

        `cpu` is what as many calls on the CPU gave, for an op whose result depends on earlier calls.
        """
        if self.case.check:
            try:
                self.case.check([[t.numpy() for t in run] for run in runs])
            except AssertionError as error:
                raise AssertionError(f"{self.call} {mode}: {error}") from None
            return 0.0
        worst = 0.0
        for number, got in enumerate(runs):
            what = f"{self.call} {mode}, run {number + 1}"
            if cpu is None:
                with tf.device("/cpu:0"), hard_placement():
                    worst = max(worst, self._expected.check(got, what))
                continue
            for i, (g, w) in enumerate(zip(got, cpu[number], strict=True)):
                if callable(self.case.compare):
                    self.case.compare(g.numpy(), w.numpy())
                else:
                    np.testing.assert_array_equal(g.numpy(), w.numpy(), err_msg=f"{what}: output {i}")
        return worst


# So many calls share a tf.function.
CALLS_PER_GRAPH = 64


def run_calls(op: str, calls: list[Call], device: str = "/xpu:0", label: str = "") -> float:
    """Runs calls of one op on `device` and on the CPU, eagerly and in a graph, twice each.

    By the op's kernels with a label, which are for graphs alone, in a graph.

    Returns the largest error as a fraction of what is allowed. Raises AssertionError on any difference.
    """
    worst = 0.0
    for stateful in (False, True):
        group = [call for call in calls if call.case.stateful == stateful]
        for i in range(0, len(group), CALLS_PER_GRAPH):
            prepared = [Prepared(call) for call in group[i : i + CALLS_PER_GRAPH]]
            eagerly = () if label else (p.run_eagerly(device) for p in prepared)
            worst = max(worst, *eagerly, _run_in_graph(op, prepared, device, label))
    return worst


def _run_in_graph(op: str, prepared: list[Prepared], device: str, label: str = "") -> float:
    """The arguments of all of them in one tf.function, which is run twice."""
    calls = [p.kwargs for p in prepared]
    with hard_placement(), nothing_folded():
        try:
            results = _call_in_graph(op, calls, device, 2, label)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            for p in prepared:  # which one was it?
                try:
                    _call_in_graph(op, [p.kwargs], device, 2, label)
                except (tf.errors.OpError, ValueError, TypeError) as its_error:
                    raise AssertionError(f"{p.call} in a tf.function: {its_error}") from its_error
            raise AssertionError(f"{op} in a tf.function with {len(calls)} calls, not with one: {error}") from error
        cpu = _call_in_graph(op, calls, "/cpu:0", 2) if prepared[0].case.stateful else None
    return max(
        p.compare([list(run[i]) for run in results], [list(run[i]) for run in cpu] if cpu else None, "in a tf.function")
        for i, p in enumerate(prepared)
    )
