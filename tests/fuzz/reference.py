"""The results of a program, and how far rounding may take a device from them: the ops one by one on the CPU.

Two devices round differently, and a step such as tf.floor, a comparison or a cast makes a whole number of a rounding
error. So every value comes with a bound of its error, and most have none. Inputs are small multiples of powers of two,
of which sums, products and moves are exact. So nearly all of a graph has to agree bit for bit, and only the values
behind a function such as tf.exp within its bound. The bound of a step's result is

    what the op itself may err by (tests/sweep/rounding.py) + how far its result moves with its inputs in their bounds

The second is measured: the op is run with inputs that were moved up, down and at random. Where that changes a whole
number, a shape, or much of anything, the step is not suitable for comparisons. The program is then made without it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from tests.fuzz import own_ops
from tests.fuzz.programs import Branch, Loop, Op, Program, Step, Value, Variable, mapped
from tests.sweep import cases, rounding, runner, sessions
from tests.sweep.rounding import FORMATS
from tests.sweep.runner import Case, Var

CASES = {**cases.CASES, **own_ops.CASES}

# The largest numbers, and elements: a larger one leaves the range in which all is exact, or takes long.
LARGEST = {tf.float16: 2.0**9, tf.bfloat16: 2.0**9}
LARGEST_OF_OTHERS = 2.0**14
MOST_ELEMENTS = 20000
# A step whose result moves by more than this is not suitable: relative to 1 and to the result.
UNSTABLE = 2.0**-4
# Only three directions are tried: another one may lead so much farther.
SAFETY = 4.0


class UnsuitableError(Exception):
    """A step of which nothing can be said that holds for every device."""

    def __init__(self, step: Step, why: str):
        super().__init__(why)
        self.step = step


@dataclasses.dataclass(frozen=True)
class Bounded:
    """A value as the CPU has it, and what others may differ from it by; None for nothing."""

    value: np.ndarray
    error: np.ndarray | None = None

    @property
    def dtype(self) -> tf.DType:
        return tf.as_dtype(self.value.dtype)

    def moved(self, how: np.ndarray | float) -> np.ndarray:
        """By so much of its error, but at least by a unit in the last place."""
        if self.error is None:
            return self.value
        wide = self.value.astype(np.complex128 if self.dtype.is_complex else np.float64)
        step = np.maximum(self.error, 2 * rounding.half_unit(np.abs(wide), FORMATS[self.dtype]))
        return np.asarray(wide + np.where(self.error > 0, how * step, 0.0)).astype(self.value.dtype)


def constant(array: np.ndarray) -> tf.Tensor:
    with tf.device("/cpu:0"):
        return tf.constant(array)


def exact_on_any_device(case: Case, native: np.ndarray, exact: np.ndarray | None, arguments: dict) -> bool:
    """True if an op's result, of exact arguments, is the same wherever it is computed. It is then one IEEE operation
    which the CPU has rounded to the nearest (it does not always, for reciprocals of whole vectors). Or it is a move, or
    made of sums and products of which none was rounded."""
    n = case.roundings(arguments) if callable(case.roundings) else case.roundings
    if case.compare == "bits":
        return True
    if n == 0:
        return exact is None or np.array_equal(native, exact.astype(native.dtype), equal_nan=True)
    if n > 2 and case.relative_to is not runner.ABSOLUTE:
        return False
    if exact is None:  # of double: multiples of a power of two, and small ones, are not what rounding leaves behind
        scaled = native * 2.0**20
        return bool(np.all(scaled == np.round(scaled)) and np.all(np.abs(native) < 2.0**20))
    return np.array_equal(native.astype(exact.dtype), exact)


class Machine:
    """The values and variables of a program that runs."""

    def __init__(self, variables: list[Bounded]):
        self.values: dict[int, Bounded] = {}
        self.variables = list(variables)

    def copy(self) -> Machine:
        other = Machine(self.variables)
        other.values = dict(self.values)
        return other

    def run(self, step: Step) -> None:
        {Op: self._op, Branch: self._branch, Loop: self._loop}[type(step)](step)

    def _branch(self, step: Branch) -> None:
        which = 0 if self.values[step.condition].value else 1
        for inner in step.branches[which]:
            self.run(inner)
        self.values[step.results[0]] = self.values[step.of_branch[which]]

    def _loop(self, step: Loop) -> None:
        before, inside, made = step.carried
        state, written = self.values[before], []
        for i in range(step.iterations):
            self.values[inside] = state
            if step.rows:
                rows = self.values[step.rows[0]]
                if len(rows.value) != step.iterations:
                    raise UnsuitableError(step, "rows of another number")
                error = None if rows.error is None else rows.error[i]
                self.values[step.rows[1]] = Bounded(rows.value[i, ...], error)
            for inner in step.body:
                self.run(inner)
            if self.values[made].value.shape != state.value.shape:
                raise UnsuitableError(step, "a shape that changes")
            state = self.values[made]
            written.append(self.values[step.written])
        if len({w.value.shape for w in written}) != 1:
            raise UnsuitableError(step, "elements of several shapes")
        errors = None
        if any(w.error is not None for w in written):
            errors = np.stack([np.zeros(w.value.shape) if w.error is None else w.error for w in written])
        self.values[step.results[0]] = state
        self.values[step.results[1]] = Bounded(np.stack([w.value for w in written]), errors)

    def _bounded(self, argument):
        """Values and variables as what they are now, arrays as exact ones; attributes stay."""
        if isinstance(argument, Value):
            return self.values[argument.number]
        if isinstance(argument, Variable):
            return self.variables[argument.number]
        return Bounded(argument) if isinstance(argument, np.ndarray) else argument

    def _arguments(self, step: Op, moved: str | None = None, how=None) -> dict:
        """As the sweep's cases have them; the values of one of them moved by how() of their errors."""

        def one(argument, is_moved):
            known = self._bounded(argument)
            if not isinstance(known, Bounded):
                return known
            tensor = constant(known.moved(how(known.value.shape)) if is_moved else known.value)
            return Var(tensor) if isinstance(argument, Variable) else tensor

        return {n: mapped(a, lambda x, is_moved=n == moved: one(x, is_moved)) for n, a in step.arguments.items()}

    def _inexact(self, step: Op) -> list[str]:
        """The names of the arguments that have errors."""
        known = {name: [self._bounded(a) for a in flat_list(argument)] for name, argument in step.arguments.items()}
        return [n for n, values in known.items() if any(isinstance(b, Bounded) and b.error is not None for b in values)]

    def _op(self, step: Op) -> None:
        case = CASES[step.op][step.case]
        try:
            results = self._results(step, case)
        except (tf.errors.OpError, ValueError, TypeError, OverflowError) as error:
            raise UnsuitableError(step, f"{type(error).__name__}: {error}") from error
        changed = [a for a in step.arguments.values() if isinstance(a, Variable)]
        outputs = results[: len(results) - len(changed)]
        for number, result in zip(step.results, outputs):
            self.values[number] = result
        for variable, result in zip(changed, results[len(outputs) :], strict=True):
            if result.value.shape != self.variables[variable.number].value.shape:
                raise UnsuitableError(step, "a variable whose shape changes")
            self.variables[variable.number] = result

    def _results(self, step: Op, case: Case) -> list[Bounded]:
        """The outputs that may be compared, and the variables."""
        arguments = self._arguments(step)
        if reads_beyond(step.op, arguments):
            raise UnsuitableError(step, "updates of another shape")
        native = runner._call(step.op, arguments, "/cpu:0")
        if step.op == "Cast" and beyond_range(arguments["x"], native[0].dtype):
            raise UnsuitableError(step, "numbers that an integer type does not have")
        for t in native:
            if t.shape.num_elements() > MOST_ELEMENTS:
                raise UnsuitableError(step, "too large")
            if t.dtype in FORMATS and not np.all(np.isfinite(t.numpy())):
                raise UnsuitableError(step, "not finite")
            if t.dtype in FORMATS and has_subnormals(t):
                raise UnsuitableError(step, "numbers that some take for zeros")
            if t.dtype != tf.bool and np.max(np.abs(rounding_free(t)), initial=0) > LARGEST.get(
                t.dtype, LARGEST_OF_OTHERS
            ):
                raise UnsuitableError(step, "too large numbers")
        inputs = [self._bounded(a) for argument in step.arguments.values() for a in flat_list(argument)]
        exact_inputs = all(b.error is None for b in inputs if isinstance(b, Bounded))
        errors: list[np.ndarray | None] = [None] * len(native)
        expected = None
        if any(t.dtype in FORMATS for t in native):
            expected = runner.Expected(step.op, case, arguments)
            for i, t in enumerate(native):
                if t.dtype in FORMATS and not (case.outputs is not None and i >= case.outputs):
                    errors[i] = own_error(case, expected, i, t, arguments, exact_inputs)
                    if divides_by_constant(step):
                        twice = 2 * 2 * rounding.half_unit(np.abs(rounding.as_double(t)), FORMATS[t.dtype])
                        errors[i] = twice if errors[i] is None else errors[i] + twice
        if not exact_inputs:
            self._add_moves(step, case, native, expected, errors)
        count = len(native) if case.outputs is None else case.outputs
        for t, error in zip(native[:count], errors):
            if error is not None and np.any(error > UNSTABLE * (1 + np.abs(rounding.as_double(t)))):
                raise UnsuitableError(step, "an error too large")
        return [Bounded(np.asarray(t.numpy()), error) for t, error in zip(native[:count], errors)]

    def _add_moves(self, step: Op, case: Case, native: list, expected: runner.Expected | None, errors: list) -> None:
        """How far the results move with the arguments: one at a time, since moves of several may cancel."""
        moves = [np.zeros(t.shape) for t in native]
        for name in self._inexact(step):
            for i, move in enumerate(self._moves_with(name, step, case, native, expected, errors)):
                moves[i] = moves[i] + move
        for i, move in enumerate(moves):
            if not np.all(np.isfinite(move)):
                raise UnsuitableError(step, "not finite nearby")
            if errors[i] is not None:
                # A move that is rounded away here may be a unit in the last place elsewhere.
                unit = 2 * rounding.half_unit(np.abs(rounding.as_double(native[i])), FORMATS[native[i].dtype])
                errors[i] = errors[i] + SAFETY * move + unit

    def _moves_with(self, name: str, step: Op, case: Case, native: list, expected, errors: list) -> list[np.ndarray]:
        """How far the results move with one argument."""
        rng = np.random.default_rng(len(self.values))
        moves = [np.zeros(t.shape) for t in native]
        for how in (lambda _: 1.0, lambda _: -1.0, lambda shape: rng.choice([-1.0, 1.0], shape)):
            arguments = self._arguments(step, name, how)
            moved = runner._call(step.op, arguments, "/cpu:0")
            # Moves are lost in the intermediate values of 16 bits that some of the CPU's kernels have.
            narrow = any(errors[i] is not None and t.dtype in (tf.float16, tf.bfloat16) for i, t in enumerate(moved))
            wide = runner.Expected(step.op, case, arguments) if narrow else None
            for i, t in enumerate(moved):
                if t.shape != native[i].shape:
                    raise UnsuitableError(step, "a shape that depends on rounding")
                if t.dtype in FORMATS:
                    moves[i] = np.maximum(moves[i], np.abs(rounding.as_double(t) - rounding.as_double(native[i])))
                    if wide is not None and (there := wide.wide(i)) is not None:
                        moves[i] = np.maximum(moves[i], np.abs(there - expected.wide(i)))
                elif not np.array_equal(t.numpy(), native[i].numpy()):
                    raise UnsuitableError(step, "whole numbers that depend on rounding")
        return moves


def divides_by_constant(step: Op) -> bool:
    """True if a graph's optimizer multiplies by the reciprocal instead, which rounds twice; halves stay exact."""
    divisor = step.arguments.get("y")
    if step.op not in ("Div", "RealDiv") or not isinstance(divisor, np.ndarray):
        return False
    if tf.as_dtype(divisor.dtype) not in FORMATS:
        return False
    mantissas, _ = np.frexp(np.abs(rounding.as_double(tf.constant(divisor))))
    return bool(np.any(mantissas != 0.5))


def reads_beyond(op: str, arguments: dict) -> bool:
    """True if the CPU's kernel would take rows of updates for rows of a variable that are longer, or shorter."""
    if not op.startswith("ResourceScatter") or "Nd" in op:
        return False
    variable, indices, updates = (arguments[name] for name in ("resource", "indices", "updates"))
    return bool(updates.shape.rank) and updates.shape != indices.shape + variable.value.shape[1:]


def beyond_range(t: tf.Tensor, to: tf.DType) -> bool:
    """True if floating-point numbers do not fit an integer type: the CPU's result depends on how many there are."""
    if t.dtype not in FORMATS or not to.is_integer:
        return False
    wide = np.trunc(rounding.as_double(t).real)
    return bool(np.any((wide < to.min) | (wide > to.max)))


def has_subnormals(t: tf.Tensor) -> bool:
    """True if there are numbers below the least normal one of the type that they are computed in."""
    wide = rounding.as_double(t)
    parts = np.abs([wide.real, wide.imag] if t.dtype.is_complex else wide)
    least = 2.0 ** rounding.COMPUTED_IN[t.dtype].least_exponent
    return bool(np.any((parts > 0) & (parts < least)))


def rounding_free(t: tf.Tensor) -> np.ndarray:
    return rounding.as_double(t) if t.dtype in FORMATS else t.numpy().astype(np.float64)


def flat_list(argument) -> list:
    return list(argument) if isinstance(argument, list | tuple) else [argument]


def own_error(case, expected, i, native, arguments, exact_inputs) -> np.ndarray | None:
    """The error that the op itself may make; None for nothing."""
    wide = expected.wide(i)
    if exact_inputs and exact_on_any_device(case, native.numpy(), wide, arguments):
        return None
    # The CPU's value, which stands for the exact one, has an error of its own.
    off = 0.0 if wide is None else np.abs(rounding.as_double(native) - wide)
    return expected.allowed(i, native.dtype) + off


def results(program: Program) -> tuple[list[list[Bounded]], list[Bounded]]:
    """The results of each call, and the variables at the end."""
    variables = [Bounded(v) for v in program.variables]
    returned = []
    for call in program.calls:
        machine = Machine(variables)
        for number, array in zip(program.inputs, program.values[call], strict=True):
            machine.values[number] = Bounded(array)
        for step in program.steps:
            machine.run(step)
        returned.append([machine.values[o] for o in program.outputs])
        variables = machine.variables
    return returned, variables


def usable(case: Case, arguments: dict) -> bool:
    """True if the CPU's own answer, in the same types, is the expected one of the case."""
    return not (case.check or case.stateful or case.expect or sessions.needs_session(arguments))
