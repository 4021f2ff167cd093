"""The programs that run: steps over numbered values, and the Python text of them, which is what the devices get."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Value:
    """An argument that is the value of this number: a result of an earlier step, or an input."""

    number: int


@dataclasses.dataclass(frozen=True)
class Variable:
    """An argument that is the variable of this number."""

    number: int


Argument = Any  # a Value, a Variable, a numpy array, a list of these, or an attribute


@dataclasses.dataclass(frozen=True)
class Op:
    """A raw op, called as a case of the sweep calls it; `results` are the numbers of its outputs."""

    op: str
    types: dict[str, tf.DType]
    case: int  # among the op's cases
    arguments: dict[str, Argument]
    results: tuple[int, ...] = ()
    is_list: bool = False  # whether it returns its outputs as anything but a tensor
    after: tuple[int, ...] = ()  # values that are computed before it

    def blocks(self) -> list[tuple[Step, ...]]:
        return []

    def uses(self) -> Iterator[int]:
        yield from self.after
        for argument in flat(self.arguments):
            if isinstance(argument, Value):
                yield argument.number

    def text(self, namer: Namer) -> list[str]:
        arguments = ", ".join(f"{name}={namer(v)}" for name, v in self.arguments.items())
        call = f"raw.{self.op}({arguments})"
        if self.is_list and self.results:
            call = f"{', '.join(f't{r}' for r in self.results)}, *_ = tf.nest.flatten({call})"
        elif self.results:
            call = f"t{self.results[0]} = {call}"
        if not self.after:
            return [call]
        return [f"with tf.control_dependencies([{', '.join(f't{a}' for a in self.after)}]):", f"    {call}"]


@dataclasses.dataclass(frozen=True)
class Branch:
    """tf.cond; of each branch the steps, and which value is its result."""

    condition: int
    branches: tuple[tuple[Step, ...], tuple[Step, ...]]
    of_branch: tuple[int, int]
    results: tuple[int]

    def blocks(self) -> list[tuple[Step, ...]]:
        return list(self.branches)

    def uses(self) -> Iterator[int]:
        yield self.condition
        yield from self.of_branch

    def text(self, namer: Namer) -> list[str]:
        name = f"t{self.results[0]}"
        lines = []
        for steps, result, suffix in zip(self.branches, self.of_branch, ("then", "other")):
            lines += [
                f"def {name}_{suffix}():",
                *indented(block_text(steps, namer)),
                f"    return tf.identity(t{result})",
            ]
        return [*lines, f"{name} = tf.cond(t{self.condition}, {name}_then, {name}_other)"]


@dataclasses.dataclass(frozen=True)
class Loop:
    """tf.while_loop of so many iterations.

    carried: (value before, value in an iteration, value that the iteration makes of it); all of one shape.
    rows: (value whose rows are read from a TensorArray, the row in an iteration).
    written: the value of each iteration that is written to a TensorArray.
    results: the last value that is carried, and the TensorArray stacked.
    """

    iterations: int
    carried: tuple[int, int, int]
    rows: tuple[int, int] | None
    body: tuple[Step, ...]
    written: int
    types: tuple[tf.DType, tf.DType | None, tf.DType]  # of carried, rows and written
    results: tuple[int, int]

    def blocks(self) -> list[tuple[Step, ...]]:
        return [self.body]

    def uses(self) -> Iterator[int]:
        yield self.carried[0]
        if self.rows:
            yield self.rows[0]
        yield from (self.carried[2], self.written)

    def text(self, namer: Namer) -> list[str]:
        last, stacked = (f"t{r}" for r in self.results)
        before, inside, made = (f"t{n}" for n in self.carried)
        lines, read = [], []
        if self.rows:
            lines = [
                f"{stacked}_rows = tf.TensorArray(tf.{self.types[1].name}, {self.iterations}).unstack(t{self.rows[0]})"
            ]
            read = [f"t{self.rows[1]} = {stacked}_rows.read(i)"]
        body = [*read, *block_text(self.body, namer), f"return i + 1, {made}, array.write(i, t{self.written})"]
        return [
            *lines,
            f"def {last}_body(i, {inside}, array):",
            *indented(body),
            f"{stacked} = tf.TensorArray(tf.{self.types[2].name}, {self.iterations})",
            f"_, {last}, {stacked} = tf.while_loop(",
            f"    lambda i, *_: i < {self.iterations}, {last}_body, [tf.constant(0), {before}, {stacked}]",
            ")",
            f"{stacked} = {stacked}.stack()",
        ]


Step = Op | Branch | Loop


@dataclasses.dataclass(frozen=True)
class Program:
    """A function and how it is called.

    inputs: numbers of its arguments; values: for each set of arguments their arrays; calls: the sets, in order.
    free: whether the function takes other shapes than those of the first set.
    variables: their values before the first call.
    outputs: numbers of what is returned.
    """

    inputs: tuple[int, ...]
    values: tuple[tuple[np.ndarray, ...], ...]
    calls: tuple[int, ...]
    free: bool
    variables: tuple[np.ndarray, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def signature(self) -> list[tf.TensorSpec]:
        """Extents that differ between calls are open."""
        specs = []
        for arrays in zip(*self.values, strict=True):
            shapes = [a.shape for a in arrays]
            shape = [extents[0] if len(set(extents)) == 1 else None for extents in zip(*shapes, strict=True)]
            specs.append(tf.TensorSpec(shape, tf.as_dtype(arrays[0].dtype)))
        return specs

    def text(self) -> tuple[str, list[np.ndarray]]:
        """Python that defines `program(inputs, v)`, v being the variables; and the constants `c` that it names."""
        namer = Namer()
        lines = [f"[{', '.join(f't{i}' for i in self.inputs)}] = inputs"] if self.inputs else []
        lines += block_text(self.steps, namer)
        lines.append(f"return [{', '.join(f't{o}' for o in self.outputs)}]")
        return "\n".join(["def program(inputs, v):", *indented(lines), ""]), namer.constants


class Namer:
    """Python text of arguments; arrays become constants with a number."""

    def __init__(self):
        self.constants: list[np.ndarray] = []

    def __call__(self, argument: Argument) -> str:
        if isinstance(argument, Value):
            return f"t{argument.number}"
        if isinstance(argument, Variable):
            return f"v[{argument.number}].handle"
        if isinstance(argument, np.ndarray):
            self.constants.append(argument)
            return f"tf.constant(c[{len(self.constants) - 1}])"
        if isinstance(argument, tf.DType):
            return f"tf.{argument.name}"
        if isinstance(argument, list | tuple):
            return f"[{', '.join(map(self, argument))}]"
        return repr(argument)


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def block_text(steps: tuple[Step, ...], namer: Namer) -> list[str]:
    return [line for step in steps for line in step.text(namer)]


def flat(argument: Argument) -> Iterator[Argument]:
    """The parts of an argument, or of a dict of them."""
    if isinstance(argument, dict):
        argument = list(argument.values())
    if isinstance(argument, list | tuple):
        for part in argument:
            yield from flat(part)
    else:
        yield argument


def mapped(argument: Argument, f: Callable[[Argument], Any]) -> Any:
    """The same structure with f of each part."""
    return [mapped(part, f) for part in argument] if isinstance(argument, list | tuple) else f(argument)


def all_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Those in branches and loops, too."""
    for step in steps:
        yield step
        for block in step.blocks():
            yield from all_steps(block)


def without(steps: tuple[Step, ...], gone: set[Step], known: set[int]) -> tuple[Step, ...]:
    """The steps but those, and but what needs their results; `known` are the values that there are, and grows."""
    kept = []
    for step in steps:
        if id(step) in gone:
            continue
        inside = set(known)
        if isinstance(step, Loop):
            inside |= {step.carried[1]} | ({step.rows[1]} if step.rows else set())
        blocks = [without(block, gone, inside) for block in step.blocks()]
        if not set(step.uses()) <= inside:
            continue
        if isinstance(step, Branch):
            changed = dataclasses.replace(step, branches=tuple(blocks))
        elif isinstance(step, Loop):
            changed = dataclasses.replace(step, body=blocks[0])
        else:
            changed = step
        kept.append(changed)
        known.update(step.results)
    return tuple(kept)


def reduced(program: Program, gone: list[Step]) -> Program:
    """The program without some steps and all that depend on them."""
    known = set(program.inputs)
    steps = without(program.steps, {id(step) for step in gone}, known)
    return dataclasses.replace(program, steps=steps, outputs=tuple(o for o in program.outputs if o in known))


STANDALONE = """
# {title}
# TF_XPU_FUSION=0 runs it op by op, DEVICE = "/cpu:0" on the CPU.
import numpy as np
import tensorflow as tf

DEVICE = "/xpu:0"
raw = tf.raw_ops


def array(values, dtype, shape):
    with tf.device("/cpu:0"):
        return tf.constant(values, dtype, shape).numpy()


c = [{constants}]
values = [{values}]


{text}

with tf.device(DEVICE):
    v = [tf.Variable(value) for value in [{variables}]]
    function = tf.function(lambda inputs: program(inputs, v), autograph=False{signature})
    for call in {calls}:
        for result in function([tf.constant(value) for value in values[call]]):
            print(result.numpy())
    for variable in v:
        print("variable", variable.numpy())
"""


def standalone(program: Program, title: str) -> str:
    """A Python program that a person can run."""

    def array(a: np.ndarray) -> str:
        return f"array({np.ravel(a).tolist()}, tf.{tf.as_dtype(a.dtype).name}, {list(a.shape)})"

    def several(arrays) -> str:
        return "".join(f"\n    {array(a)}," for a in arrays) + ("\n" if len(arrays) else "")

    text, constants = program.text()
    signature = ""
    if program.free:
        specs = ", ".join(f"tf.TensorSpec({s.shape.as_list()}, tf.{s.dtype.name})" for s in program.signature())
        signature = f", input_signature=[[{specs}]]"
    sets = "".join(textwrap.indent(f"\n[{several(arrays)}],", "    ") for arrays in program.values)
    return STANDALONE.format(
        title=title,
        constants=several(constants),
        values=sets + "\n",
        text=text.rstrip(),
        variables=several(program.variables),
        signature=signature,
        calls=list(program.calls),
    ).lstrip()
