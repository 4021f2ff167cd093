"""NNSmith's graphs as programs of tests/fuzz, which runs, compares and reduces them."""

from __future__ import annotations

import collections
import contextlib
import inspect
import io
import random
import warnings
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tests.fuzz.generate import DyadicRng
from tests.fuzz.programs import Op, Program, Value
from tests.fuzz.reference import CASES, Bounded, Machine, UnsuitableError

# NNSmith gives up after so many milliseconds. This is long, so that a busy machine makes the same graphs.
PATIENCE = 600_000
MOST_ELEMENTS = 1200
TYPES = ("float32",) * 3 + ("float16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


def graph(seed: int) -> Any:
    """NNSmith's graph of a seed."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from nnsmith.abstract.dtype import DType
        from nnsmith.graph_gen import model_gen

        from tests.nnsmith.operators import opset

        random.seed(seed)
        np.random.seed(seed)
        size = 4 + seed % 20
        types = [DType.from_str(name) for name in dict.fromkeys(TYPES)]
        generator = model_gen(
            opset=opset(),
            method="symbolic-cinit" if seed % 2 else "concolic",
            seed=seed,
            max_nodes=size,
            timeout_ms=PATIENCE,
            max_elem_per_tensor=MOST_ELEMENTS,
            dtype_choices=types,
        )
        return generator.make_concrete()


class Weights:
    """Small numbers, exact in any type, always the same ones for a seed."""

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)

    def __call__(self, shape, dtype: tf.DType) -> tf.Tensor:
        return tf.constant(np.asarray(self._rng.integers(-6, 7, shape) / 4).astype(dtype.as_numpy_dtype))


# The generator takes another graph if fewer ops than this can be compared.
FEWEST = 3


def generate(seed: int) -> Program:
    """The program of a seed."""
    for attempt in range(20):
        found = program(seed + attempt * 1_000_003, collections.Counter())
        if len(found.steps) >= FEWEST:
            break
    return found


def program(seed: int, left_out: collections.Counter[str]) -> Program:
    """The program of NNSmith's graph of a seed; `left_out` counts the reasons why ops were left out."""
    with tf.Graph().as_default() as traced:
        inputs, _ = trace(graph(seed), Weights(seed), left_out)
    numbers: dict[str, int] = {tensor.name: i for i, tensor in enumerate(inputs)}
    rng = DyadicRng(seed)
    sets = tuple(tuple(rng.uniform(t.shape.as_list(), t.dtype, -4.0, 4.0).numpy() for t in inputs) for _ in range(2))
    steps, values = suitable([step_of(op, numbers) for op in traced.get_operations() if is_step(op)], sets, left_out)
    # The program returns all results that no step reads, and some of the others. Some ops have outputs that nobody
    # compares, such as what the gradient of a normalization reads.
    made = [number for step in steps for number in step.results if number in values]
    read = {number for step in steps for number in step.uses()}
    outputs = [number for number in made if number not in read or number % 3 == 0]
    return Program(tuple(range(len(inputs))), sets, (0, 1, 0), False, (), tuple(steps), tuple(outputs))


def trace(ir: Any, weights: Weights, left_out: collections.Counter[str]) -> tuple[list[tf.Tensor], dict]:
    """Makes the ops of a graph; returns its inputs and all values by name."""
    from tests.nnsmith.operators import made

    inputs, values = [], {}
    for inst in ir.insts:
        op, name = inst.iexpr.op, inst.retval()
        if type(op).__name__ in ("Input", "Constant"):
            kind = op.abs_tensor
            values[name] = tf.compat.v1.placeholder(kind.dtype.name, kind.shape)
            inputs.append(values[name])
        elif all(arg in values for arg in inst.iexpr.args):
            try:
                found = made(op, weights, [values[arg] for arg in inst.iexpr.args])
            except (NotImplementedError, TypeError, ValueError) as error:
                left_out[f"{type(op).__name__}: {type(error).__name__}"] += 1
                continue
            # A test of the table: NNSmith and TensorFlow infer the same shape.
            expected = [int(n) for n in op.output_like[0].shape]
            assert found.shape.as_list() == expected, f"{op}: {found.shape}, expected {expected}"
            values[name] = found
    return inputs, values


def is_step(op: tf.Operation) -> bool:
    return op.type not in ("Placeholder", "Const")


def step_of(op: tf.Operation, numbers: dict[str, int]) -> Op:
    """Makes a step of a graph's op. `numbers` maps names of tensors to numbers, and gets the op's results."""
    definition = op_def_registry.get(op.type)
    inferred, arguments, given = set(), {}, iter(op.inputs)
    for argument in definition.input_arg:
        inferred |= {argument.type_attr, argument.number_attr, argument.type_list_attr}
        if argument.number_attr:
            several = range(op.get_attr(argument.number_attr))
            arguments[argument.name] = [of_tensor(next(given), numbers) for _ in several]
        else:
            arguments[argument.name] = of_tensor(next(given), numbers)
    types = {}
    for attribute in definition.attr:
        value = op.get_attr(attribute.name)
        if attribute.type == "type":
            types[attribute.name] = value
        if attribute.name not in inferred:
            arguments[attribute.name] = value.decode() if isinstance(value, bytes) else value
    for tensor in op.outputs:
        numbers[tensor.name] = len(numbers)
    results = tuple(numbers[tensor.name] for tensor in op.outputs)
    return Op(op.type, types, case_of(op.type), in_python(op.type, arguments), results, is_list=len(results) > 1)


def in_python(op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments under the names that tf.raw_ops has for them. A few differ from the names in graphs."""
    names = [name for name in inspect.signature(getattr(tf.raw_ops, op)).parameters if name != "name"]
    renamed = iter([name for name in names if name not in arguments])
    return {name if name in names else next(renamed): value for name, value in arguments.items()}


def of_tensor(tensor: tf.Tensor, numbers: dict[str, int]) -> Any:
    """The argument that a tensor is: an array if the tensor is constant."""
    if tensor.op.type == "Const":
        return tf.make_ndarray(tensor.op.get_attr("value"))
    return Value(numbers[tensor.name])


def case_of(op: str) -> int:
    """The sweep's case with the most roundings. A function of the arguments wins over a number."""
    cases = CASES.get(op, [])
    ranked = [(callable(c.roundings), 0 if callable(c.roundings) else c.roundings, -i) for i, c in enumerate(cases)]
    return -max(ranked, default=(False, 0, 0))[2]


def suitable(steps: list[Op], sets: tuple, left_out: collections.Counter[str]) -> tuple[list[Op], set[int]]:
    """The steps whose results can be compared (tests/fuzz/reference.py) and that need no other steps; their values."""
    machines = [Machine([]) for _ in sets]
    for machine, arrays in zip(machines, sets):
        machine.values.update({i: Bounded(array) for i, array in enumerate(arrays)})
    kept = []
    for step in steps:
        if not set(step.uses()) <= machines[0].values.keys():
            continue
        if step.op not in CASES:
            left_out[f"{step.op}: no case of the sweep"] += 1
            continue
        try:
            for machine in machines:
                machine.run(step)
        except UnsuitableError as error:
            left_out[f"{step.op}: {str(error)[:50]}"] += 1
            for machine in machines:
                for number in step.results:
                    machine.values.pop(number, None)
            continue
        kept.append(step)
    return kept, set(machines[0].values)
