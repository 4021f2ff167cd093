"""ONNX's test cases: models of one node, expanded operators, and models with stored data."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import warnings
from typing import Any

import numpy as np
import onnx
import tensorflow as tf

from tests.onnx_nodes import control, elementwise, movement, nets, others, reductions
from tests.onnx_nodes.interpreter import NotKnownError, constant_of, normal, run_model

FAMILIES = (control, elementwise, movement, nets, others, reductions)

# Models with stored inputs and outputs; "real" ones have to be downloaded.
STORED = ("simple", "pytorch-operator", "pytorch-converted")


@dataclasses.dataclass(frozen=True)
class Case:
    """inputs, outputs: arrays, lists of arrays (sequences), or None for an optional one that is not there."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    name_of_operator: str = ""

    @property
    def of(self) -> str:
        """The operator that it is a case of, or the kind of model."""
        return self.name.split("/")[0] if "/" in self.name else self.name_of_operator

    @property
    def operators(self) -> set[tuple[str, str]]:
        return set(operators_in(self.model.graph))


def operators_in(graph: onnx.GraphProto):
    for node in graph.node:
        yield normal(node.domain), node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from operators_in(attribute.g)


def array(value: Any) -> Any:
    """The value of a test, as arrays."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [array(v) for v in value]
    return value


@functools.cache
def load() -> dict[str, Case]:
    """All cases by name, always the same ones."""
    from onnx.backend.test.loader import load_model_tests

    state = np.random.get_state()
    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = load_model_tests(kind="node")
    np.random.set_state(state)
    cases, of = {}, ""
    for case in nodes:
        if "_expanded" not in case.name:  # its expanded cases follow it
            of = case.model.graph.node[0].op_type
        for inputs, outputs in case.data_sets:
            values = (tuple(array(v) for v in vs) for vs in (inputs, outputs))
            cases[case.name] = Case(case.name, case.model, *values, of)
    for kind in STORED:
        for case in load_model_tests(kind=kind):
            if case.model_dir is not None:
                cases[f"{kind}/{case.name}"] = stored(f"{kind}/{case.name}", pathlib.Path(case.model_dir))
    return cases


def stored(name: str, folder: pathlib.Path) -> Case:
    """The first data set of a model's folder."""
    model = onnx.load(folder / "model.onnx")

    def values(kind, infos):
        found = []
        for i, info in enumerate(infos):
            file = folder / "test_data_set_0" / f"{kind}_{i}.pb"
            if not file.exists():
                break
            of_type = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
            proto = of_type.get(info.type.WhichOneof("value"), onnx.TensorProto)()
            proto.ParseFromString(file.read_bytes())
            read = {onnx.SequenceProto: onnx.numpy_helper.to_list, onnx.OptionalProto: onnx.numpy_helper.to_optional}
            found.append(read.get(type(proto), onnx.numpy_helper.to_array)(proto))
        return tuple(found)

    return Case(name, model, values("input", model.graph.input), values("output", model.graph.output))


def tensors(value: Any) -> Any:
    """An input as the interpreter takes it."""
    if isinstance(value, list):
        return [tf.constant(v) for v in value]
    return None if value is None else tf.constant(value)


def eagerly(case: Case, device: str) -> list:
    with tf.device(device):
        return tf.nest.map_structure(to_array, run_model(case.model, [tensors(v) for v in case.inputs]))


def in_function(case: Case, device: str, calls: int = 2) -> list[list]:
    """The outputs of each call of a tf.function.

    Its arguments are tensors. Where TensorFlow needs the value of one to make the graph, vectors of integers and bools
    are constants. Where that is not enough, all vectors are. Raises NotKnownError where a value is missing still.
    """
    inputs = [tensors(v) for v in case.inputs]

    vectors = [tf.is_tensor(v) and v.shape.rank <= 1 for v in inputs]
    whole = [is_vector and not v.dtype.is_floating for is_vector, v in zip(vectors, inputs)]
    for fixed in ([False] * len(inputs), whole, vectors):

        @tf.function(autograph=False)
        def function(arguments, fixed=fixed):
            with tf.device(device):
                given = iter(arguments)
                values = [constant_of(v) if f else next(given) for v, f in zip(case.inputs, fixed)]
                return run_model(case.model, values)

        arguments = [v for v, f in zip(inputs, fixed) if not f]
        try:
            with tf.device(device):
                function.get_concrete_function(arguments)
        except (NotKnownError, TypeError, ValueError) as error:  # a value is missing, or a shape that depends on one
            unknown = error
            continue
        with tf.device(device):
            return [tf.nest.map_structure(to_array, function(arguments)) for _ in range(calls)]
    raise NotKnownError(str(unknown)) from unknown


def to_array(value: Any) -> Any:
    return value.numpy() if tf.is_tensor(value) else value


# By type: the bound relative to each number, and the bound relative to the largest one. ONNX allows 1e-3 and 1e-7.
BOUNDS = {
    "float64": (1e-5, 1e-6),
    "float32": (1e-5, 1e-6),
    "float16": (2e-3, 1e-3),
    "bfloat16": (2e-2, 8e-3),
}


def differences(case: Case, found: list, rounded: float = 0.0) -> str:
    """Describes the first output that differs from the stored one; `rounded` is the error of the stored one."""
    if len(found) < len(case.outputs):
        return f"{len(found)} outputs, expected {len(case.outputs)}"
    for i, (want, got) in enumerate(zip(case.outputs, found)):
        said = difference(want, got, rounded)
        if said:
            return f"output {i}: {said}"
    return ""


def difference(want: Any, got: Any, rounded: float = 0.0) -> str:
    if isinstance(want, list) or want is None:
        if isinstance(want, list) != isinstance(got, list) or (want is not None and len(want) != len(got)):
            return f"{got}, expected {want}"
        return next((said for w, g in zip(want or (), got or ()) if (said := difference(w, g, rounded))), "")
    want, got = np.asarray(want), np.asarray(got)
    if want.dtype.kind in "OSU":
        got = np.array([v.decode() for v in got.ravel()], object).reshape(got.shape)
        want = want.astype(object)
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if want.dtype.name not in BOUNDS:
        wrong = want != got
        if want.dtype.name.startswith("float8"):
            wrong &= ~(np.isnan(want.astype(np.float32)) & np.isnan(got.astype(np.float32)))
    else:
        relative, of_largest = BOUNDS[want.dtype.name]
        want, got = want.astype(np.float64), got.astype(np.float64)
        finite = np.abs(want[np.isfinite(want)])
        allowed = max(of_largest, rounded) * (finite.max() if finite.size else 0.0)
        wrong = ~np.isclose(got, want, relative, allowed, equal_nan=True)
    if not wrong.any():
        return ""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {want.size} are wrong, the first at {list(at)}: {got[at]}, expected {want[at]}"
