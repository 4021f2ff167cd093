"""Ops that write into the buffer of an input, and ops that TensorFlow's own rewrites make."""

import tensorflow as tf

from tests.sweep.runner import Case
from tests.sweep.sessions import Built, hidden

raw = tf.raw_ops


def in_place(op):
    """Rows counted from both ends; a row that is named twice; no rows. The input sees what was written into it."""

    def build(x, v, rows):
        x = raw.DeepCopy(x=x)
        y = getattr(raw, op)(x=x, i=tf.constant(rows, tf.int32), v=v)
        with tf.control_dependencies([y]):
            return [y, tf.identity(x)]

    def arguments(t, r, rows, rest, low):
        x, v = r.uniform([4, *rest], t["T"]), r.uniform([len(rows), *rest], t["T"], low, low + 6)
        if x.dtype == tf.bool:
            v = tf.constant(~x.numpy()[rows])
        return {"x": x, "v": v, "rows": rows, "build": Built(build)}

    # Every element of the first that is written changes.
    return [
        Case(lambda t, r, case=case: arguments(t, r, *case))
        for case in [([2, -1], [3], 3.0), ([1, 1, 0], [], -3.0), ([], [2, 3], -3.0)]
    ]


def concatenated(attribute):
    """tf.parallel_stack as TensorFlow replaces it."""

    def build(values):
        rows = tf.unstack(values)
        start = hidden("_ParallelConcatStart", shape=values.shape, dtype=values.dtype)
        updates = [
            hidden("_ParallelConcatUpdate", value=start, update=tf.expand_dims(row, 0), loc=i)
            for i, row in enumerate(rows)
        ]
        with tf.control_dependencies(updates):
            return [tf.identity(start)]

    return [
        Case(lambda t, r, s=s: {"values": r.uniform(s, t[attribute]), "build": Built(build)})
        for s in ([3, 2, 2], [2], [1, 5])
    ]


def waited_for():
    def build(x):
        doubled = x * 2
        with tf.control_dependencies([doubled]):
            done = raw.SyncDevice()
        with tf.control_dependencies([done]):
            return [tf.identity(doubled)]

    return Case(lambda t, r: {"x": r.uniform([3], tf.float32), "build": Built(build)})


def empty(init):
    def build(like, init):
        y = raw.Empty(shape=tf.constant([2, 3], tf.int32), dtype=like.dtype, init=init)
        return [y if init else tf.shape(y)]

    return Case(lambda t, r: {"like": r.uniform([], t["dtype"]), "init": init, "build": Built(build)})


def fused_normalisation(activation, with_side_input, training):
    """Inputs that are clear of zero after it, where a Relu bends."""

    def build(x, scale, offset, mean, variance, side):
        outputs = hidden(
            "_FusedBatchNormEx",
            x=x,
            scale=scale,
            offset=offset,
            mean=mean,
            variance=variance,
            side_input=[side] if with_side_input else [],
            activation_mode=activation,
            is_training=training,
            epsilon=1e-3,
            exponential_avg_factor=1.0,
            data_format="NHWC",
        )
        return list(outputs[: 3 if training else 1])

    def expect(kwargs):
        x, scale, offset, mean, variance, side = (
            kwargs[name] for name in ("x", "scale", "offset", "mean", "variance", "side")
        )
        with tf.device("/cpu:0"):
            y, *statistics = raw.FusedBatchNormV3(
                x=tf.cast(x, tf.float32),
                scale=scale,
                offset=offset,
                mean=mean,
                variance=variance,
                is_training=training,
                epsilon=1e-3,
            )
            y = tf.cast(tf.cast(y, x.dtype), tf.float32)
            y = y + tf.cast(side, tf.float32) if with_side_input else y
            y = tf.nn.relu(y) if activation == "Relu" else y
            return [tf.cast(y, x.dtype), *statistics[: 2 if training else 0]]

    def make(t, r):
        channels = {name: r.uniform([8], tf.float32, 0.5, 1.5) for name in ("scale", "offset", "mean", "variance")}
        x = {name: r.uniform([2, 3, 3, 8], t["T"]) for name in ("x", "side")}
        return {**x, **channels, "build": Built(build)}

    return Case(make, roundings=32, relative_to=lambda _, exact: [abs(e) + 1 for e in exact], expect=expect)


CASES = {
    "_FusedBatchNormEx": [
        fused_normalisation(activation, side, training)
        for activation, side, training in [("Relu", False, True), ("Relu", True, False), ("Identity", True, True)]
    ],
    "InplaceUpdate": in_place("InplaceUpdate"),
    "InplaceAdd": in_place("InplaceAdd"),
    "InplaceSub": in_place("InplaceSub"),
    "DeepCopy": [Case(lambda t, r, s=s: {"x": r.uniform(s, t["T"])}) for s in ([], [0, 2], [5, 3])],
    "Empty": [empty(True), empty(False)],
    "SyncDevice": [waited_for()],
    "_ParallelConcatStart": concatenated("dtype"),
    "_ParallelConcatUpdate": concatenated("T"),
    "_TensorToHashBucketFast": [
        Case(
            lambda t, r, n=n: {
                "x": r.uniform([33, 2], t["T"], -1e9, 1e9),
                "n": n,
                "build": Built(lambda x, n: [hidden("_TensorToHashBucketFast", input=x, num_buckets=n)]),
            }
        )
        for n in (1, 1000)
    ],
}
