"""Random functions of loops within loops, conditions, Python functions and variables.

python -m tests.fuzz.control_flow 0 50    prints the seeds, of 50, whose function differs between /xpu:0 and /cpu:0

The loops count in three types. Their conditions depend on data and on inner loops, and so do their counts.
"""

from __future__ import annotations

import random
import sys

import numpy as np
import tensorflow as tf

COUNTERS = (tf.float32, tf.int64, tf.int32)
DEEPEST, MOST_LOOPS = 3, 14
CALLS = 3


class Maker:
    """Makes the ops of a seed's function. A list of the values so far goes from step to step."""

    def __init__(self, seed: int):
        self._seed = seed
        self.variable = tf.Variable(tf.ones([3]))

    def __call__(self, x, *counters):
        """The function, of a vector and a number of each type."""
        self._random, self._loops = random.Random(self._seed), 0
        return self._block([x, *counters], 0, 5)

    def _vectors(self, values: list) -> list:
        return [v for v in values if v.shape.rank == 1]

    def _number(self, values: list, dtype: tf.DType) -> tf.Tensor:
        numbers = [v for v in values if v.shape.rank == 0]
        same = [v for v in numbers if v.dtype == dtype]
        kind = self._random.randrange(5)
        if kind == 0 or not same:
            return tf.constant(self._random.randrange(1, 4), dtype)
        if kind == 1:
            other = self._random.choice(numbers)
            return tf.cast(tf.clip_by_value(other, tf.cast(-50, other.dtype), tf.cast(50, other.dtype)), dtype)
        one, two = self._random.choice(same), self._random.choice(same)
        return self._random.choice([tf.maximum, tf.minimum, tf.add, lambda a, _: a + tf.constant(1, dtype)])(one, two)

    def _vector(self, values: list) -> tf.Tensor:
        one, two = (self._random.choice(self._vectors(values)) for _ in range(2))

        def in_python():
            return tf.ensure_shape(tf.numpy_function(lambda v: v * np.float32(0.5), [one], tf.float32), [3])

        def through_variable():
            self.variable.assign(tf.tanh(one))
            return self.variable.read_value() + 1.0

        def asserted():
            with tf.control_dependencies([tf.debugging.assert_less(tf.reduce_sum(tf.abs(one)), 1e30)]):
                return one * 0.9

        def shifted():
            return one * 0.5 + tf.cast(self._number(values, self._random.choice(COUNTERS)), tf.float32) * 0.01

        def gathered():
            return tf.gather(one, tf.math.floormod(tf.stack([self._number(values, tf.int32), 0, 1]), 3))

        plain = [lambda: tf.sin(one) + two, lambda: tf.where(one > two, one, one * 0.3)]
        mapped = [lambda: tf.ensure_shape(tf.map_fn(tf.cos, one), [3])]
        return self._random.choice([*plain, *mapped, in_python, through_variable, asserted, shifted, gathered])()

    def _loop(self, values: list, depth: int) -> list:
        dtype, kind = self._random.choice(COUNTERS), self._random.randrange(4)
        bound = tf.clip_by_value(self._number(values, dtype), tf.cast(0, dtype), tf.cast(4, dtype))

        def goes_on(i, vector):
            if kind == 1:
                return tf.logical_and(i < bound, tf.reduce_sum(vector) < 100.0)
            if kind == 2:
                return tf.while_loop(lambda j, _: j < 2, lambda j, _: (j + 1, i < bound), [0, tf.constant(False)])[1]
            return i < bound

        def step(i, vector):
            inner = self._block([*values, i, vector], depth + 1, self._random.randrange(1, 4))
            by = tf.constant(1, dtype)
            if kind == 3:
                by = tf.clip_by_value(self._number(inner, dtype), tf.cast(1, dtype), tf.cast(3, dtype))
            return i + by, tf.clip_by_value(self._vectors(inner)[-1], -10.0, 10.0)

        return list(tf.while_loop(goes_on, step, [tf.constant(0, dtype), self._vector(values)], maximum_iterations=6))

    def _branches(self, values: list, depth: int) -> list:
        def branch():
            return self._vectors(self._block(values, depth + 1, self._random.randrange(3)))[-1]

        return [tf.cond(tf.reduce_sum(self._vector(values)) > 0.0, branch, branch)]

    def _block(self, values: list, depth: int, steps: int) -> list:
        values = list(values)
        for _ in range(steps):
            kind = self._random.randrange(10)
            if kind < 4 and depth < DEEPEST and self._loops < MOST_LOOPS:
                self._loops += 1
                values += (self._loop if kind < 3 else self._branches)(values, depth)
            elif kind < 6:
                values.append(self._number(values, self._random.choice(COUNTERS)))
            else:
                values.append(self._vector(values))
        return values


def results(seed: int, device: str) -> list[np.ndarray]:
    """Those of all calls, the variable after each, and a gradient."""
    with tf.device(device):
        maker = Maker(seed)
        function = tf.function(maker, autograph=False)
        found = []
        for call in range(CALLS):
            maker.variable.assign(tf.ones([3]))
            x = tf.constant([0.3, -0.7, 1.2]) * (call + 1.0)
            counters = [tf.constant(1.5 + call), tf.constant(2 + call % 2, tf.int64), tf.constant(call)]
            found += [value.numpy() for value in [*function(x, *counters), maker.variable]]
        if seed % 3 == 0:
            with tf.GradientTape() as tape:
                tape.watch(x)
                sums = [tf.reduce_sum(value) for value in function(x, *counters) if value.dtype == tf.float32]
                loss = tf.add_n(sums)
            found.append(tape.gradient(loss, x, unconnected_gradients="zero").numpy())
    return found


def differs(seed: int) -> bool:
    expected = results(seed, "/cpu:0")
    try:
        found = results(seed, "/xpu:0")
    except tf.errors.OpError as error:
        print(error, file=sys.stderr)
        return True
    return not all(np.allclose(f, e, 1e-3, 1e-4, equal_nan=True) for f, e in zip(found, expected, strict=True))


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
        print(f"seed {seed} {'differs' if differs(seed) else 'is right'}", flush=True)
