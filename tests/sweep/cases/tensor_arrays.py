"""TensorArrays of TensorFlow 1, by reference, by name and by resource."""

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, versions_pb2

from tests.sweep.runner import ABSOLUTE, Case
from tests.sweep.sessions import Built

raw = tf.raw_ops


class Array:
    """A TensorArray of one of the three versions: its ops with its handle, in the order in which they are called."""

    def __init__(self, version, like, size, **attributes):
        if version != "V3":
            # TensorFlow takes these from old graphs alone.
            tf.import_graph_def(graph_pb2.GraphDef(versions=versions_pb2.VersionDef(producer=15)), name="")
        make = getattr(raw, f"TensorArray{version}")(size=size, dtype=like.dtype, **attributes)
        self.version, self.dtype = version, like.dtype
        self.handle, self.flow = make if version == "V3" else (make, tf.zeros([]))

    def _op(self, name, **arguments):
        op = getattr(raw, name if name[-4:] in ("Pack", "pack") else name + self.version)
        # A reference and a string say nothing of what happened before: the flow does.
        with tf.control_dependencies([self.flow]):
            return op(handle=self.handle, flow_in=self.flow, **arguments)

    def change(self, what, **arguments):
        self.flow = self._op(f"TensorArray{what}", **arguments)
        return self

    def give(self, what, **arguments):
        out = self._op(f"TensorArray{what}", dtype=self.dtype, **arguments)
        self.flow = tf.zeros([]) if self.version == "V3" else self.flow
        with tf.control_dependencies([out[0] if isinstance(out, tuple) else out]):
            self.flow = tf.identity(self.flow)
        return list(out) if isinstance(out, tuple) else [out]

    def size(self):
        return self._op("TensorArraySize")

    def close(self):
        with tf.control_dependencies([self.flow]):
            return getattr(raw, f"TensorArrayClose{self.version}")(handle=self.handle)

    def gradient(self, **arguments):
        """The array in which the gradients of this one's elements add up."""
        name = "TensorArrayGradWithShape" if arguments else f"TensorArrayGrad{self.version}"
        other = object.__new__(Array)
        other.version, other.dtype = self.version, self.dtype
        with tf.control_dependencies([self.flow]):
            made = getattr(raw, name)(handle=self.handle, flow_in=self.flow, source="g", **arguments)
        other.handle, other.flow = made if self.version == "V3" else (made, tf.identity(self.flow))
        return other


def written(version, x):
    """Elements as different as the type allows, each once."""
    a = Array(version, x, 3)
    for i in range(3):
        a.change("Write", index=i, value=x[i])
    return a


def element(version):
    def build(x):
        a = written(version, x)
        return [a.give("Read", index=i)[0] for i in (2, 0, 1)]

    return build


def added(version):
    """Gradients of one element add up; one that nobody wrote is zeros."""

    def build(x):
        g = written(version, x).gradient()
        if x.dtype == tf.bool:
            g.change("Write", index=0, value=x[0]).change("Write", index=1, value=x[1])
        else:
            for i in (0, 1, 0, 0):
                g.change("Write", index=i, value=x[i])
        return [g.give("Read", index=i)[0] for i in range(3)]

    return build


def gathered(version):
    def build(x):
        return written(version, x).give("Gather", indices=[2, 0])

    return build


def scattered(version):
    """In an array that grows."""

    def build(x):
        a = Array(version, x, 0, dynamic_size=True).change("Scatter", indices=[2, 0, 1], value=x)
        return [a.give("Read", index=i)[0] for i in range(3)]

    return build


def packed(x):
    return written("", x).give("Pack")


def unpacked(x):
    a = Array("", x, 3).change("Unpack", value=x)
    return [a.give("Read", index=i)[0] for i in range(3)]


def concatenated(version):
    def build(x):
        return written(version, x).give("Concat")

    return build


def split(version):
    """In parts of different lengths, one of them empty."""

    def build(x):
        a = Array(version, x, 3).change("Split", value=x, lengths=tf.constant([1, 0, 2], tf.int64))
        return [a.give("Read", index=i)[0] for i in range(3)]

    return build


def cases(attribute, build, compared=None):
    """Elements that may lie within a larger tensor's memory, in the wider types, and elements that may not."""
    return [
        Case(
            lambda t, r: {"x": r.uniform((3, 16), t[attribute], 1, 9), "build": Built(build)},
            **(compared or {"compare": "bits"}),
        )
    ]


# Each sum is an element, and rounded as one.
SUMS = {"roundings": 2, "relative_to": ABSOLUTE, "stored": True}


def counted(version):
    """An array that has grown, and the array of its gradients, which is as large."""

    def build(x):
        a = Array(version, x, 1, dynamic_size=True).change("Scatter", indices=[2, 0, 1], value=x)
        return [a.size(), a.gradient().size()]

    return build


def closed(version):
    """Its name is free for another one."""

    def build(x):
        a = written(version, x)
        (y,) = a.give("Read", index=0)
        with tf.control_dependencies([a.close()]):
            return [tf.identity(y)]

    return build


def with_shape(x):
    """Gradients of three lanes at once."""
    g = written("V3", x).gradient(shape_to_prepend=[3])
    g.change("Write", index=1, value=tf.stack([x[1]] * 3))
    return [g.give("Read", index=i)[0] for i in range(3)]


def of_any_type(build):
    return [Case(lambda t, r: {"x": r.uniform((3, 2), tf.float32, 1, 9), "build": Built(build)}, compare="bits")]


VERSIONS = ("", "V2", "V3")
CASES = {
    **{f"TensorArray{v}": cases("dtype", element(v)) for v in VERSIONS},
    **{f"TensorArrayWrite{v}": cases("T", added(v), SUMS) for v in VERSIONS},
    **{f"TensorArrayRead{v}": cases("dtype", element(v)) for v in VERSIONS},
    **{f"TensorArrayGather{v}": cases("dtype", gathered(v)) for v in VERSIONS},
    **{f"TensorArrayScatter{v}": cases("T", scattered(v)) for v in VERSIONS},
    **{f"TensorArrayConcat{v}": cases("dtype", concatenated(v)) for v in VERSIONS},
    **{f"TensorArraySplit{v}": cases("T", split(v)) for v in VERSIONS},
    **{f"TensorArraySize{v}": of_any_type(counted(v)) for v in VERSIONS},
    **{f"TensorArrayGrad{v}": of_any_type(counted(v)) for v in VERSIONS},
    **{f"TensorArrayClose{v}": of_any_type(closed(v)) for v in VERSIONS},
    "TensorArrayGradWithShape": of_any_type(with_shape),
    "TensorArrayPack": cases("dtype", packed),
    "TensorArrayUnpack": cases("T", unpacked),
}
