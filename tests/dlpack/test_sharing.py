"""A consumer that writes to what it imported, READ_ONLY or not, changes nothing that TensorFlow uses elsewhere."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from tensorflow_xpu import dlpack
from tests.support.dlpack_c import IS_COPIED, PLACES, READ_ONLY, opened, reachable

# Each makes a function that gives the tensor to export, and one that gives what must stay as it is.
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def normal(*shape):
    return tf.random.stateless_normal(shape, [1, 2])


@case
def a_scalar():
    return lambda: tf.constant(1), lambda: tf.constant(1)


@case
def a_constant_of_a_graph():
    f = tf.function(lambda: tf.constant([1.0, 2.0, 3.0]))
    return f, f


@case
def a_folded_constant():
    f = tf.function(lambda: tf.ones([4, 5]) * 2)
    return f, f


@case
def a_captured_tensor():
    captured = normal(5)
    f = tf.function(lambda: tf.identity(captured))
    return f, f


@case
def an_argument_returned():
    x = normal(5)
    y = tf.function(lambda x: x)(x)
    return lambda: y, lambda: x


@case
def a_cached_gradient_of_zero():
    x, y = normal(7, 3), normal(7, 3)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            first, _ = tf.raw_ops.IdentityN(input=[x, y])
        return tape.gradient(first, [x, y])[1]

    return gradient, gradient


@case
def a_reshaped_tensor():
    x = normal(4, 6)
    y = tf.reshape(x, [24])
    return lambda: y, lambda: x


@case
def the_tensor_that_was_reshaped():
    x = normal(4, 6)
    y = tf.reshape(x, [24])
    return lambda: x, lambda: y


@case
def an_identity():
    x = normal(5)
    y = tf.identity(x)
    return lambda: y, lambda: x


@case
def a_slice():
    x = normal(64, 64)
    y = x[16:32]
    return lambda: y, lambda: x


@case
def the_tensor_of_a_slice():
    x = normal(64, 64)
    y = x[16:32]
    return lambda: x, lambda: y


@case
def one_of_two_slices():
    x, y = tf.split(normal(64, 64), 2)
    return lambda: x, lambda: y


@case
def the_value_of_a_variable():
    variable = tf.Variable(normal(5))
    return variable.read_value, variable.read_value


@case
def the_initial_value_of_a_variable():
    x = normal(5)
    variable = tf.Variable(x)
    return lambda: x, variable.read_value


@case
def an_element_of_a_dataset():
    dataset = tf.data.Dataset.from_tensors(normal(5))
    return lambda: next(iter(dataset)), lambda: next(iter(dataset))


@case
def a_cached_element_of_a_dataset():
    dataset = tf.data.Dataset.range(3).map(lambda i: tf.cast(i, tf.float32) * tf.ones([4])).cache()
    list(dataset)
    return lambda: next(iter(dataset)), lambda: next(iter(dataset))


@case
def an_operand_of_a_gradient():
    x, w = normal(5), tf.Variable(tf.ones([5]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reshape(x, [5]) * w
    return lambda: x, lambda: tape.gradient(y, w)


@pytest.mark.parametrize("device", ["/cpu:0", "/xpu:0"])
@pytest.mark.parametrize("name", CASES)
def test_writes_disturb_nobody(xpu_device, name, device):
    with tf.device(device):
        export, check = CASES[name]()
        before = np.array(check())
        torch.from_dlpack(reachable(export())).fill_(-77)
        np.testing.assert_array_equal(np.array(check()), before)


def address(tensor, **arguments):
    return opened(tensor.__dlpack__(**arguments)).dl_tensor.data


def flags(tensor, **arguments):
    return opened(tensor.__dlpack__(max_version=(1, 0), **arguments)).flags


@pytest.mark.of_hooks("holders")
@pytest.mark.parametrize("device", ["/cpu:0", "/xpu:0"])
def test_only_what_others_use_is_copied(xpu_device, device):
    with tf.device(device):
        x = normal(64, 64)
        first = address(x)
        kept = x.__dlpack__()
        assert address(x) == first, "what is exported already counts as another use"
        assert flags(x) == READ_ONLY
        part = x[16:32]
        if flags(part) == IS_COPIED:  # on an XPU a slice is a copy already
            assert flags(x) == IS_COPIED
            assert address(x, copy=False) == first
            assert flags(x, copy=False) == READ_ONLY
            in_place = address(part, copy=False)
            del x, kept
            assert address(part) == in_place
            assert flags(part) == READ_ONLY
        else:
            assert address(x) == first


def test_what_is_asked_for_by_name_is_shared(xpu_device):
    for device in ("/cpu:0", "/xpu:0"):
        with tf.device(device):
            variable = tf.Variable(normal(5))
        assert variable.__dlpack_device__() == PLACES[device]
        assert flags(variable) == READ_ONLY
        assert address(variable) == address(variable.value(), copy=False)
        assert flags(variable, copy=True) == IS_COPIED


@pytest.mark.parametrize("device", ["/cpu:0", "/xpu:0"])
def test_tensorflow_does_not_reuse_exported_memory(xpu_device, device):
    """An eager tensor that only an export keeps, and operations that could write their result into its memory."""
    with tf.device(device):
        x = normal(1000)
        expected = x.numpy()
        kept = dlpack.from_dlpack(x.__dlpack__())
        x = tf.nn.relu(-x)
        for _ in range(5):
            x = tf.nn.relu(x - 1)
        np.testing.assert_array_equal(kept.numpy(), expected)
        variable = tf.Variable(normal(1000))
        kept = dlpack.from_dlpack(variable.__dlpack__())
        expected = kept.numpy()
        for _ in range(5):
            variable.assign_add(tf.ones([1000]))
        np.testing.assert_array_equal(kept.numpy(), expected)
