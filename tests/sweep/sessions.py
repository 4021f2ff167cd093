"""Ops that only a graph of TensorFlow 1 takes: on reference variables, internal ones, ones that write into inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.framework import op_def_library

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Built:
    """An argument that says how the op is called: given the other arguments, the tensors to fetch."""

    build: Callable[..., list]


@dataclasses.dataclass(frozen=True)
class Like:
    """An argument that says that the variables are references, and which op does the same on resources.

    renamed: this op's names of arguments, where they are others. Results are the values of the variables alone.
    """

    op: str
    renamed: dict[str, str]


def needs_session(kwargs: dict) -> bool:
    return any(isinstance(v, (Built, Like)) for v in kwargs.values())


def on_resources(kwargs: dict) -> tuple[str, dict]:
    """The op and arguments that do the same on resources: the CPU's answer does not take a session."""
    like = next(v for v in kwargs.values() if isinstance(v, Like))
    return like.op, {k: v for k, v in kwargs.items() if v is not like}


def hidden(op: str, **kwargs):
    """Adds an op that has no Python function to the graph."""
    return op_def_library.apply_op(op, name=op.strip("_"), **kwargs)


def config() -> tf1.ConfigProto:
    """Soft placement off, and no folding of what the test means to run: neither Grappler's nor the session's own."""
    options = tf1.ConfigProto(allow_soft_placement=False)
    options.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    options.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return options


def constant(value: tf.Tensor, known: bool) -> tf.Tensor:
    """An eager tensor's value in the graph, which knows its shape or not."""
    if known:
        return tf.constant(value.numpy())
    with tf.device("/cpu:0"):
        return tf1.placeholder_with_default(value.numpy(), None)


def run(op: str, calls: list[dict], device: str, times: int = 1, known: bool = True) -> list[list[list]]:
    """Runs calls of `op` in one session, `times` times: by time and call the outputs, or the references' values.

    known: whether the graph knows the shapes of the arguments.
    """
    with tf.Graph().as_default() as graph, graph.device(device):
        references, outputs = [], []
        for kwargs in calls:
            args, build, renamed, own = {}, getattr(tf.raw_ops, op, None), {}, []
            for name, v in kwargs.items():
                if isinstance(v, Built):
                    build = v.build
                elif isinstance(v, Like):
                    renamed = v.renamed
                elif hasattr(v, "value"):
                    own.append(tf1.Variable(v.value.numpy(), use_resource=False, validate_shape=known))
                    args[name] = own[-1]._ref()
                else:
                    args[name] = constant(v, known) if tf.is_tensor(v) else v
            references.append(own)
            outputs.append(tf.nest.flatten(build(**{renamed.get(k, k): v for k, v in args.items()})))
        results = []
        for _ in range(times):
            with tf1.Session(graph=graph, config=config()) as session:
                session.run([v.initializer for own in references for v in own])
                out_values = session.run(outputs)
                values = session.run([[v._ref() for v in own] for own in references])
            # The result of an op on a reference is the reference.
            results.append([v or o for o, v in zip(out_values, values)])
    with tf.device("/cpu:0"):
        return [[list(map(tf.constant, all_of)) for all_of in by_call] for by_call in results]
