"""The differences between TensorFlow's versions, by name.

Tests that run with several of them ask here, and nowhere for a number. They say what holds where something is lacking.
"""

import tensorflow as tf

from tests.support.installed import MINOR


def has_type(name):
    """True if TensorFlow has this type: float4_e2m1fn came with 2.21."""
    try:
        tf.as_dtype(name)
    except TypeError:
        return False
    return True


# The line of a profile that has copies from one device to another: 2.19 and 2.20 make them on the compute stream.
COPIES_BETWEEN_DEVICES = {"2_19": "compute", "2_20": "compute"}.get(MINOR, "copies between devices")
