"""FakeQuantWithMinMax* and QuantizeAndDequantize*.

Results jump from step to step, so that one rounding more or less could make a whole step. All roundings are the CPU's,
and so are the bits. Only sums of gradients depend on their order.
"""

import numpy as np
import tensorflow as tf

from tests.sweep.rounding import terms
from tests.sweep.runner import Case

SHAPE = (6, 9, 5)
BITS = ({"num_bits": 8}, {"num_bits": 4, "narrow_range": True}, {"num_bits": 16})
# Around 0, not around it, and nothing but it.
RANGES = [(-6.0, 6.0), (-0.1, 2.3), (0.3, 2.0), (-3.0, -1.0), (0.0, 0.0)]
ATTRIBUTES = [dict(zip(("min", "max"), r)) for r in RANGES[:4]]
SCALARS = [dict(zip(("min", "max"), r)) for r in RANGES]
CHANNELS = [{"min": [r[0] for r in RANGES], "max": [r[1] for r in RANGES]}]
SPECIAL = [[np.nan, np.inf, -np.inf, 0.0, -0.0]]


def forward(ranges, as_range):
    def case(x, ends, bits):
        return Case(lambda t, r: {"inputs": x(r), **as_range(ends), **bits}, compare="bits")

    return [
        *[case(lambda r: r.uniform(SHAPE, tf.float32, -4.0, 4.0), e, b) for e in ranges for b in BITS],
        case(lambda r: tf.constant(SPECIAL), ranges[0], {}),
        case(lambda r: tf.zeros((0, 5)), ranges[0], {}),
    ]


def magnitudes(args, exact):
    """For the gradients: those of the ranges' ends are sums of them, over the elements that go with an end."""
    dy = np.abs(args["gradients"].astype(np.float64))
    rows = dy.reshape(-1, dy.shape[-1]).sum(0)
    return [np.abs(exact[0]), *(rows if e.ndim else rows.sum() for e in exact[1:])]


def gradient(ranges, as_range, summed):
    def case(ends, bits, shape=SHAPE):
        return Case(
            lambda t, r: {
                "gradients": r.uniform(shape, tf.float32),
                "inputs": r.uniform(shape, tf.float32, -4.0, 4.0),
                **as_range(ends),
                **bits,
            },
            terms(summed),
            magnitudes,
        )

    return [*[case(e, b) for e in ranges for b in BITS], case(ranges[0], {}, (0, 5))]


def tensors(ends):
    return {k: tf.constant(v) for k, v in ends.items()}


def quantize(bits_given=False):
    """With one range or one for each index of an axis, given or found."""
    modes = [{"narrow_range": True}, {"signed_input": False}, {}]
    roundings = [{}] if bits_given else [{"round_mode": "HALF_UP"}, {"round_mode": "HALF_TO_EVEN"}]

    def case(axis, given, low, high, **attributes):
        def make(t, r):
            bits = attributes.get("num_bits", 8)
            return {
                "input": r.uniform((4, 3, 5), t["T"], -4.0, 4.0),
                "input_min": tf.constant(low, t["T"]),
                "input_max": tf.constant(high, t["T"]),
                "axis": axis,
                "range_given": given,
                **attributes,
                "num_bits": tf.constant(bits) if bits_given else bits,
            }

        return Case(make, compare="bits")

    cases = [case(-1, given, -1.5, 3.1, **m, **k) for given in (False, True) for m in modes for k in roundings]
    cases += [case(axis, False, [0.0] * n, [0.0] * n) for axis, n in enumerate((4, 3, 5))]
    cases += [case(-1, True, 0.0, 3.0, num_bits=3), case(-1, True, -3.0, 0.0, num_bits=20)]
    # The CPU refuses ranges of an axis where the number of bits is an attribute.
    return cases + ([case(1, True, [-1.0, -2.0, 0.0], [3.0, 0.5, 1.0])] if bits_given else [])


def quantize_gradient(axis, low, high):
    return Case(
        lambda t, r: {
            "gradients": r.uniform((4, 3, 5), t["T"]),
            "input": r.uniform((4, 3, 5), t["T"]),
            "input_min": tf.constant(low, t["T"]),
            "input_max": tf.constant(high, t["T"]),
            "axis": axis,
        },
        compare="bits",
    )


CASES = {
    "FakeQuantWithMinMaxArgs": forward(ATTRIBUTES, dict),
    "FakeQuantWithMinMaxVars": forward(SCALARS, tensors),
    "FakeQuantWithMinMaxVarsPerChannel": forward(CHANNELS, tensors),
    "FakeQuantWithMinMaxArgsGradient": gradient(ATTRIBUTES, dict, 1),
    "FakeQuantWithMinMaxVarsGradient": gradient(SCALARS, tensors, 6 * 9 * 5),
    "FakeQuantWithMinMaxVarsPerChannelGradient": gradient(CHANNELS, tensors, 6 * 9),
    "QuantizeAndDequantizeV2": quantize(),
    "QuantizeAndDequantizeV3": quantize(bits_given=True),
    "QuantizeAndDequantizeV4": quantize(),
    "QuantizeAndDequantizeV4Grad": [
        quantize_gradient(-1, -1.0, 1.0),
        quantize_gradient(1, [-1.0, -2.0, 0.0], [3.0, 0.5, 1.0]),
    ],
}
