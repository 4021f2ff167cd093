"""What TensorFlow's versions do not have in common, by name.

Tests that run with several of them ask here, and nowhere for a number. They say what holds where something is lacking.
"""

import tensorflow as tf


def has_type(name):
    """Whether TensorFlow has this type: float4_e2m1fn came with 2.21."""
    try:
        tf.as_dtype(name)
    except TypeError:
        return False
    return True
