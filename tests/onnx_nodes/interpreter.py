"""Runs ONNX graphs with TensorFlow ops. The table (`operator`) has a function of ops for each ONNX operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import tensorflow as tf

# (domain, operator) -> its function. The function takes a Node and the inputs: tensors, lists of tensors for ONNX's
# sequences, or None for an input that is left out. It returns a value, or a tuple of several.
OPERATORS: dict[tuple[str, str], Callable[..., Any]] = {}


class NotKnownError(Exception):
    """TensorFlow needs the value of a tensor to make the graph, and the tensor is an argument of the graph."""


def operator(*names: str, domain: str = "") -> Callable:
    """Enters a function into the table under these names."""

    def enter(function):
        for name in names:
            assert (domain, name) not in OPERATORS, name
            OPERATORS[domain, name] = function
        return function

    return enter


def known(tensor: tf.Tensor | None) -> np.ndarray | None:
    """The value of a tensor as an array, None for None. Raises NotKnownError if it is not known yet."""
    if tensor is None:
        return None
    value = tf.get_static_value(tensor)
    if value is None:
        raise NotKnownError(getattr(tensor, "name", ""))
    return value


def whole(tensor: tf.Tensor | None) -> list[int] | None:
    """The value of a tensor as a list of Python integers."""
    value = known(tensor)
    return None if value is None else [int(v) for v in np.ravel(value)]


def type_of(number: int) -> tf.DType:
    """TensorFlow's type for ONNX's."""
    if number == onnx.TensorProto.STRING:
        return tf.string
    return tf.as_dtype(onnx.helper.tensor_dtype_to_np_dtype(number))


def on_host() -> Any:
    """The device scope of an op or type for which TensorFlow has no kernel on accelerators."""
    return tf.device("/cpu:0")


def constant(tensor: onnx.TensorProto) -> tf.Tensor:
    return constant_of(onnx.numpy_helper.to_array(tensor))


def constant_of(value: Any, dtype: tf.DType | None = None) -> tf.Tensor:
    """A tensor whose value is known even while a graph is made."""
    with tf.init_scope(), on_host():
        return tf.constant(value, dtype)


def is_constant(value: Any) -> bool:
    return hasattr(value, "numpy")


class Node:
    """A node as its operator's function sees it.

    node["axis"] is the attribute, or its default in the graph's version of ONNX, or None.
    opset: that version, of the node's domain.
    outputs: the number of outputs, including those that the graph leaves out.
    """

    def __init__(self, proto: onnx.NodeProto, opsets: dict[str, int], values: dict[str, Any]):
        self.name, self.opset, self.outputs = proto.op_type, opsets.get(proto.domain, 0), len(proto.output)
        self.wanted = [bool(name) for name in proto.output]
        self._opsets, self.values = opsets, values
        schema = onnx.defs.get_schema(proto.op_type, self.opset, proto.domain)
        defaults = [a.default_value for a in schema.attributes.values() if a.default_value.name]
        self._attributes = {
            a.name: onnx.helper.get_attribute_value(a) for a in (*defaults, *proto.attribute) if not a.ref_attr_name
        }

    def __getitem__(self, name: str) -> Any:
        value = self._attributes.get(name)
        return value.decode() if isinstance(value, bytes) else value

    def run(self, attribute: str, *arguments: Any, seen: dict[str, Any] | None = None) -> list:
        """The outputs of a graph that is an attribute. It sees the values around it, or those in `seen`."""
        graph = self._attributes[attribute]
        bound = dict(zip((i.name for i in graph.input), arguments))
        return run_graph(graph, {**(self.values if seen is None else seen), **bound}, self._opsets)


def run_node(proto: onnx.NodeProto, opsets: dict[str, int], values: dict[str, Any]) -> None:
    """Adds a node's results to the values.

    While a TensorFlow graph is made, nodes that depend only on constants and shapes run at once.
    """
    function, node = OPERATORS[normal(proto.domain), proto.op_type], Node(proto, opsets, values)
    arguments = [values[name] if name else None for name in proto.input]
    tensors = [a for a in tf.nest.flatten(arguments) if tf.is_tensor(a)]
    alone = all(map(is_constant, tensors)) and not any(a.type == onnx.AttributeProto.GRAPH for a in proto.attribute)
    if tf.executing_eagerly():
        found = function(node, *arguments)
    elif alone and not proto.domain:  # operators of other domains may have variables
        with tf.init_scope(), on_host():
            found = function(node, *arguments)
    else:
        found = function(node, *tf.nest.map_structure(in_graph, arguments))
    outputs = found if isinstance(found, tuple) else (found,)
    values.update((name, value) for name, value in zip(proto.output, outputs) if name)


def in_graph(value: Any) -> Any:
    """Makes a known value a constant of the graph, which lies on the graph's device."""
    return tf.constant(value.numpy()) if is_constant(value) else value


def normal(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def run_graph(graph: onnx.GraphProto, values: dict[str, Any], opsets: dict[str, int]) -> list:
    """The outputs of a graph. `values` has its inputs and all other values that it sees."""
    values = {**{t.name: constant(t) for t in graph.initializer}, **values}
    for proto in graph.node:
        run_node(proto, opsets, values)
    return [values[output.name] for output in graph.output]


def run_model(model: onnx.ModelProto, inputs: Sequence[Any]) -> list:
    """The outputs of a model for these values of its inputs, in their order."""
    opsets = {domain: o.version for o in model.opset_import for domain in {o.domain, normal(o.domain)}}
    initialized = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in initialized or len(inputs) == len(model.graph.input)]
    return run_graph(model.graph, dict(zip(names, inputs, strict=True)), opsets)
