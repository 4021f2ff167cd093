"""Random programs: steps are cases of the sweep, whose arguments are results of other steps where these fit."""

from __future__ import annotations

import collections
import dataclasses
import functools

import numpy as np
import tensorflow as tf

from tests.fuzz import own_ops
from tests.fuzz.programs import Branch, Loop, Op, Program, Step, Value, Variable, all_steps, mapped, reduced
from tests.fuzz.reference import CASES, Bounded, Machine, UnsuitableError, results, usable
from tests.sweep.cases import nets, nn, order, state
from tests.sweep.registrations import Registration, all_registrations
from tests.sweep.runner import Rng, Var, _outputs_of

# Rules of clusters and passes apply to these above all: a third of the steps.
COMMON = (
    *("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "AddN", "BiasAdd"),
    *("Neg", "Abs", "Square", "Relu", "Floor", "Tanh", "Sigmoid", "Exp", "Sqrt", "Cast"),
    *("Select", "SelectV2", "LessEqual", "Greater", "LogicalAnd"),
    *("Sum", "Max", "Mean", "BiasAddGrad", "MatMul", "BatchMatMulV2", "Einsum"),
    *("Transpose", "Slice", "StridedSlice", "ConcatV2", "Split", "Pack", "Unpack"),
    *("Tile", "BroadcastTo", "Pad", "ReverseV2"),
    *("Reshape", "ExpandDims", "Squeeze", "Identity", "Shape"),
    *("ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
    *("ResourceApplyAdam", "ResourceApplyMomentum", "ResourceApplyGradientDescent"),
    *("ResourceStridedSliceAssign", "ResourceScatterAdd"),
)

# Ops that TensorFlow folds, hoists or rewrites to something else than it computes, on the CPU as on any device.
NOT_EVERYWHERE = {
    "OnesLike": (tf.uint32, tf.uint64),  # folded to zeros
    "ZerosLike": (tf.uint32, tf.uint64),
}
# The CPU's kernels write their result over the gradient before they have read it, where nobody else has it.
WRONG_ON_CPU = {op for op in CASES if op.startswith("MaxPool") and op.endswith(("GradGrad", "GradGradV2"))}
# Arguments that the CPU takes on trust: if they are wrong, it computes nonsense or ends the process. For example,
# constant folding divides by the rank of what is reversed. Shapes of these families are those of the cases, and these
# arguments of these ops the cases' own.
CASES_SHAPES = {*nn.CASES, *nets.CASES, *(op for op in state.CASES if "Sparse" in op), "ReverseV2"}
CASES_OWN = {
    **dict.fromkeys((op for op in CASES if op.startswith("MaxPool") and "Grad" in op), ("orig_input", "orig_output")),
    "Bitcast": ("input",),
    # Indices that do not fit the shape are put in some order.
    "SparseReorder": ("input_indices", "input_shape"),
    # Rows that are not sorted, NaN among what is sorted, and gradients of no rows, which the CPU does not write.
    **dict.fromkeys(("LowerBound", "UpperBound"), ("sorted_inputs",)),
    **dict.fromkeys(("TopKV2", "ApproxTopK", "NthElement"), ("input",)),
    **dict.fromkeys((op for op in order.CASES if op.startswith("SparseSegment")), ("indices", "segment_ids")),
    # In rows that are named twice, 16 bits are rounded in between, or are not.
    **dict.fromkeys((op for op in state.CASES if "Sparse" in op), ("indices",)),
}
# Ops that refuse an index out of range, wherever they run, and the argument that holds indices.
INDEXED = {
    **dict.fromkeys((op for op in CASES if "Gather" in op and "Tensor" not in op), "indices"),
    **dict.fromkeys((op for op in CASES if "Scatter" in op and "TensorList" not in op), "indices"),
    **dict.fromkeys((op for op in CASES if op.startswith("UnsortedSegment")), "segment_ids"),
}
OUT_OF_RANGE = 100_000
DTYPES = (tf.float32,) * 8 + (tf.float64, tf.bfloat16, tf.float16, tf.int64, tf.int32, tf.bool, tf.complex64, tf.uint8)
EXTENTS = (1, 2, 3, 4, 5, 7, 9)
MOST_OF_AN_ARGUMENT = 1200  # elements


class DyadicRng(Rng):
    """Floating-point numbers are multiples of a power of two, as few bits as the range allows: sums are exact."""

    def uniform(self, shape, dtype, low=-3.0, high=3.0):
        if dtype == tf.bool or dtype.is_integer:
            return super().uniform(shape, dtype, low, high)
        step = 0.25
        while np.floor(high / step) - np.ceil(low / step) < 3:
            step /= 2

        def draw():
            return self._rng.integers(np.ceil(low / step), np.floor(high / step) + 1, shape) * step

        values = draw() + 1j * draw() if dtype.is_complex else draw()
        return tf.cast(tf.constant(values), dtype)


@functools.cache
def kernels() -> dict[str, list[Registration]]:
    """The possible steps, by op: the registered kernels that have cases, and TensorFlow's own ops."""
    by_op = collections.defaultdict(list)
    for registration in all_registrations():
        if registration.op in CASES and registration.op not in WRONG_ON_CPU and not registration.label:
            by_op[registration.op].append(registration)
    for op in own_ops.CASES:
        by_op[op] = [Registration(op, (("T", dtype),), (), "", 0) for dtype in own_ops.TYPES]
    return dict(by_op)


@functools.cache
def ops_of(dtype: tf.DType) -> list[str]:
    return [op for op, known in kernels().items() if any(dtype in r.type_map.values() for r in known)]


class Generator:
    """Makes one program. All sets of arguments are run beside each other, so that each step suits all of them."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.free = self.rng.random() < 0.3
        self.next = 0
        self.variables: list[np.ndarray] = []
        self.machines = [Machine([]) for _ in range(2)]
        self.inputs: list[int] = []
        self.scope: list[int] = []
        self.shape: list[int] | None = None  # of the value that the op at hand got last
        self.is_update = False  # whether that op is an optimizer's

    def number(self) -> int:
        self.next += 1
        return self.next - 1

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def choose(self, options):
        return options[int(self.rng.integers(len(options)))]

    def program(self) -> Program:
        extents = [[int(self.choose(EXTENTS)) for _ in range(4)] for _ in range(2)]
        if self.chance(0.1):
            extents[-1][0] = 0
        if not self.free:
            extents[1] = extents[0]
        for _ in range(int(self.rng.integers(1, 4))):
            self.input(extents)
        steps = self.block(int(self.rng.integers(3, 28)), nested=True)
        calls = (0, 1, 0, 1) if self.free else (0, 1, 0)
        program = Program(
            inputs=tuple(self.inputs),
            values=tuple(tuple(m.values[i].value for i in self.inputs) for m in self.machines),
            calls=calls,
            free=self.free,
            variables=tuple(self.variables),
            steps=tuple(steps),
            outputs=(),
        )
        # Every call needs the variables that earlier ones have left.
        while True:
            try:
                results(program)
                break
            except UnsuitableError as unsuitable:
                program = reduced(program, [outermost(program.steps, unsuitable.step)])
        program = dataclasses.replace(program, outputs=self.outputs_of(program.steps))
        return self.spoiled(program) if self.chance(0.1) else program

    def spoiled(self, program: Program) -> Program:
        """The program with an index out of range in the second of its calls, if one of its arguments is indices."""
        numbers = {
            argument.number
            for step in all_steps(program.steps)
            if isinstance(step, Op) and isinstance(argument := step.arguments.get(INDEXED.get(step.op, "")), Value)
        }
        at = [i for i, n in enumerate(program.inputs) if n in numbers and program.values[-1][i].size > 0]
        if not at:
            return program
        i = int(self.choose(at))
        indices = program.values[-1][i].copy()
        indices.flat[int(self.rng.integers(indices.size))] = OUT_OF_RANGE
        return dataclasses.replace(
            program, values=(*program.values[:-1], (*program.values[-1][:i], indices, *program.values[-1][i + 1 :]))
        )

    def input(self, extents) -> None:
        dtype = self.choose(DTYPES)
        axes = [int(a) for a in self.rng.integers(0, 4, int(self.rng.integers(0, 4)))]
        number = self.number()
        self.inputs.append(number)
        self.scope.append(number)
        rng = DyadicRng(int(self.rng.integers(1 << 30)))
        for machine, of_set in zip(self.machines, extents):
            shape = [of_set[a] for a in axes]
            machine.values[number] = Bounded(np.asarray(rng.uniform(shape, dtype).numpy()))

    def outputs_of(self, steps) -> tuple[int, ...]:
        """The values that no step reads, and some of the others."""
        made = [r for step in steps for r in step.results]
        read = {u for step in steps for u in step.uses()}
        return tuple(r for r in made if r not in read or self.chance(0.15))

    def block(self, count: int, nested: bool) -> list[Step]:
        """Steps in the scope as it is, which grows by what they make."""
        steps: list[Step] = []
        for _ in range(count * 6):
            if len(steps) >= count:
                break
            kind = self.rng.random()
            if nested and kind < 0.03:
                found = self.attempt(self.loop)
            elif nested and kind < 0.06:
                found = self.attempt(self.branch)
            else:
                found = self.attempt(self.op)
            steps += found
        return steps

    def attempt(self, make) -> list[Step]:
        """The result of make() if it suits all sets of arguments; or nothing."""
        saved = [m.copy() for m in self.machines]
        scope, variables, inputs = list(self.scope), len(self.variables), len(self.inputs)
        try:
            return make()
        except UnsuitableError:
            # The additions for it go, too.
            del self.variables[variables:], self.inputs[inputs:]
            self.machines, self.scope = saved, scope
            return []

    def add(self, step: Step) -> Step:
        for machine in self.machines:
            machine.run(step)
        self.scope += step.results
        return step

    # Ops

    def op(self) -> list[Step]:
        value = self.known(self.choose(self.scope[-8:] if self.chance(0.6) else self.scope))
        op = self.choose(COMMON) if self.chance(0.35) else self.choose(ops_of(value.dtype))
        fitting = [r for r in kernels().get(op, []) if value.dtype in r.type_map.values()] or kernels().get(op, [])
        if not fitting:
            return []
        registration = self.choose(fitting)
        types = registration.type_map
        first = next(iter(types.values()), None)
        if first in NOT_EVERYWHERE.get(op, ()):
            return []
        cases = [i for i, c in enumerate(CASES[op]) if not c.types or first in c.types]
        number = int(self.choose(cases))
        with tf.device("/cpu:0"):
            made = CASES[op][number].make(types, DyadicRng(int(self.rng.integers(1 << 30))))
        if not usable(CASES[op][number], made):
            return []
        glue: list[Step] = []
        taken: set[int] = set()
        fits = self.chance(0.4) or op in CASES_SHAPES
        self.shape = None
        # Learning rates and their like have to be positive.
        self.is_update = op.startswith(("ResourceApply", "ResourceSparseApply"))
        arguments = {}
        for name, v in made.items():
            if name in CASES_OWN.get(op, ()):
                arguments[name] = np.asarray(v.numpy())
                continue
            arguments[name] = mapped(
                v, lambda part, name=name: self.argument(part, name in registration.host_args, fits, taken, glue)
            )
        step = Op(op, types, number, arguments)
        return [*glue, self.add(self.with_results(step))]

    def with_results(self, step: Op) -> Op:
        """Calls it once to see how many results it has, and how they come."""
        case = CASES[step.op][step.case]
        arguments = self.machines[0]._arguments(step)
        try:
            with tf.device("/cpu:0"):
                variables = {k: tf.Variable(v.value) for k, v in arguments.items() if isinstance(v, Var)}
                raw = getattr(tf.raw_ops, step.op)
                out = raw(**{k: variables[k].handle if k in variables else v for k, v in arguments.items()})
        except (tf.errors.OpError, ValueError, TypeError, OverflowError) as error:
            raise UnsuitableError(step, str(error)) from error
        count = len(_outputs_of(out)) if case.outputs is None else case.outputs
        after = tuple(int(self.choose(self.scope)) for _ in range(2)) if self.chance(0.05) else ()
        numbers = tuple(self.number() for _ in range(count))
        return dataclasses.replace(step, results=numbers, is_list=not isinstance(out, tf.Tensor), after=after)

    def argument(self, made, in_host: bool, fits: bool, taken: set[int], glue: list[Step]):
        if isinstance(made, Var):
            return self.variable(made, taken)
        if not isinstance(made, tf.Tensor):
            return made
        if made.shape.num_elements() > MOST_OF_AN_ARGUMENT:
            raise UnsuitableError(None, "a large argument")
        shape = made.shape.as_list()
        known = [n for n in self.scope if self.known(n).dtype == made.dtype]
        if same := [n for n in known if list(self.known(n).value.shape) == (self.shape or shape)]:
            known = same if self.chance(0.8) else known
        if (
            known
            and not (self.is_update and not shape)
            and self.chance(0.02 if in_host else 0.75 if same or shape else 0.1)
        ):
            number = int(self.choose(known[-5:] if self.chance(0.5) else known))
            self.shape = list(self.known(number).value.shape)
            return Value(self.fitted(number, shape, glue) if fits else number)
        if self.chance(0.1 if in_host else 0.6):
            return Value(self.same_input(np.asarray(made.numpy())))
        return np.asarray(made.numpy())

    def known(self, number: int) -> Bounded:
        return self.machines[0].values[number]

    def same_input(self, array: np.ndarray) -> int:
        number = self.number()
        self.inputs.append(number)
        for machine in self.machines:
            machine.values[number] = Bounded(array)
        return number

    def variable(self, made: Var, taken: set[int]) -> Variable:
        """One that there is, or a new one with this value; no two of an op's arguments are the same."""
        array = np.asarray(made.value.numpy())
        if array.size > MOST_OF_AN_ARGUMENT:
            raise UnsuitableError(None, "a large argument")
        alike = [
            i
            for i, v in enumerate(self.variables)
            if v.dtype == array.dtype and v.shape == array.shape and i not in taken
        ]
        if alike and self.chance(0.7):
            number = int(self.choose(alike))
        else:
            number = len(self.variables)
            self.variables.append(array)
            for machine in self.machines:
                machine.variables.append(Bounded(array))
        taken.add(number)
        return Variable(number)

    def fitted(self, number: int, shape: list[int], glue: list[Step]) -> int:
        """A value of this shape made of that one by Reshape, Tile and Slice."""
        if all(list(m.values[number].value.shape) == shape for m in self.machines):
            return number
        dtype, size = self.known(number).dtype, int(np.prod(shape, dtype=np.int64))
        if any(m.values[number].value.size == 0 for m in self.machines) and size > 0:
            raise UnsuitableError(None, "nothing to make it of")
        least = min(m.values[number].value.size for m in self.machines)

        def add(op, **arguments) -> int:
            types = kernels()[op][0].type_map
            types = next((r.type_map for r in kernels().get(op, []) if r.type_map.get("T") == dtype), types)
            step = Op(op, types, 0, arguments, (self.number(),))
            glue.append(self.add(step))
            return step.results[0]

        flat_one = number
        if any(m.values[number].value.size != size for m in self.machines):
            flat_one = add("Reshape", tensor=Value(number), shape=np.array([-1], np.int32))
        if least < size:
            flat_one = add("Tile", input=Value(flat_one), multiples=np.array([-(-size // max(least, 1))], np.int32))
        if any(m.values[flat_one].value.size != size for m in self.machines):
            flat_one = add(
                "Slice", input=Value(flat_one), begin=np.array([0], np.int32), size=np.array([size], np.int32)
            )
        return add("Reshape", tensor=Value(flat_one), shape=np.array(shape, np.int32).reshape(-1))

    # Branches and loops

    def rewind(self, saved: list[Machine]) -> None:
        """Undoes what has run since; variables and inputs that were added stay."""
        for machine, now in zip(saved, self.machines, strict=True):
            machine.values.update({n: now.values[n] for n in self.inputs})
            machine.variables += [Bounded(v) for v in self.variables[len(machine.variables) :]]
        self.machines = saved

    def alike(self, number: int, among: list[int]) -> list[int]:
        """Values of the same type and shapes."""
        return [
            n
            for n in among
            if all(
                m.values[n].value.dtype == m.values[number].value.dtype
                and m.values[n].value.shape == m.values[number].value.shape
                for m in self.machines
            )
        ]

    def inner(self, steps_wanted: int) -> tuple[tuple[Step, ...], list[int]]:
        """A block of its own: its steps, and the values that it makes; the machines are left as if it had run."""
        outer = len(self.scope)
        steps = self.block(steps_wanted, nested=False)
        made = self.scope[outer:]
        del self.scope[outer:]
        return tuple(steps), made

    def branch(self) -> list[Step]:
        scalars = [n for n in self.scope if all(m.values[n].value.ndim == 0 for m in self.machines)]
        conditions = [n for n in scalars if self.known(n).dtype == tf.bool]
        glue: list[Step] = []
        if conditions:
            condition = int(self.choose(conditions))
        else:
            source = self.choose([n for n in self.scope if self.known(n).dtype in (tf.float32, tf.float64)] or [None])
            if source is None:
                return []
            dtype = self.known(source).dtype
            total = Op(
                "Sum",
                {"T": dtype, "Tidx": tf.int32},
                0,
                {
                    "input": Value(source),
                    "axis": np.arange(self.known(source).value.ndim, dtype=np.int32),
                    "keep_dims": False,
                },
                (self.number(),),
            )
            zero = np.zeros((), dtype.as_numpy_dtype)
            compare = Op("Greater", {"T": dtype}, 0, {"x": Value(total.results[0]), "y": zero}, (self.number(),))
            glue = [self.add(total), self.add(compare)]
            condition = compare.results[0]
        saved = [m.copy() for m in self.machines]
        first, made = self.inner(int(self.rng.integers(1, 6)))
        if not made:
            raise UnsuitableError(None, "a branch that makes nothing")
        result = int(self.choose(made))
        # The values of the other branch are made beside those of the first, which says what fits.
        second, made = self.inner(int(self.rng.integers(0, 6)))
        other = int(self.choose(self.alike(result, [*made, *self.scope]) or [-1]))
        self.rewind(saved)
        if other < 0:
            raise UnsuitableError(None, "no branch like it")
        step = Branch(condition, (first, second), (result, other), (self.number(),))
        return [*glue, self.add(step)]

    def loop(self) -> list[Step]:
        before = int(self.choose(self.scope))
        lengths = {n: {m.values[n].value.shape[:1] for m in self.machines} for n in self.scope}
        readable = [n for n, of in lengths.items() if len(of) == 1 and of <= {(1,), (2,), (3,), (4,)}]
        rows = (int(self.choose(readable)), self.number()) if readable and self.chance(0.5) else None
        iterations = len(self.known(rows[0]).value) if rows else int(self.rng.integers(1, 4))
        inside = self.number()
        saved = [m.copy() for m in self.machines]
        for machine in self.machines:
            machine.values[inside] = machine.values[before]
            if rows:
                source = machine.values[rows[0]]
                machine.values[rows[1]] = Bounded(
                    source.value[0, ...], None if source.error is None else source.error[0]
                )
        scope = list(self.scope)
        self.scope += [inside] + ([rows[1]] if rows else [])
        body, made = self.inner(int(self.rng.integers(1, 7)))
        after = self.alike(inside, [*made, inside])
        written = int(self.choose(made or [inside]))
        types = tuple(self.known(n).dtype if n is not None else None for n in (before, rows and rows[0], written))
        self.rewind(saved)
        self.scope = scope
        step = Loop(
            iterations,
            (before, inside, int(self.choose(after[:3]))),
            rows,
            body,
            written,
            types,
            (self.number(), self.number()),
        )
        return [self.add(step)]


def outermost(steps: tuple[Step, ...], step: Step) -> Step:
    """The one of the steps that has this one inside, or is it."""

    def holds(outer: Step) -> bool:
        return outer is step or any(holds(inner) for block in outer.blocks() for inner in block)

    return next(outer for outer in steps if holds(outer))


def generate(seed: int) -> Program:
    return Generator(seed).program()
