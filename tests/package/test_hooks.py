"""Every hook of the package is in force with the TensorFlow and the Keras that the project is tested with."""

import importlib

import pytest

from tensorflow_xpu import _hooks
from tests.support.hooks import is_tested_pair

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

# What each replaces, and the attribute by which the replacement is known.
REPLACED = {
    "_eager_hook": ("tensorflow.python.eager.context:Context._initialize_logical_devices", "__wrapped__"),
    "_read_hook": ("tensorflow.python.framework.ops:_EagerTensorBase._numpy", "__wrapped__"),
    "_call_hook": ("tensorflow.python.eager.context:Context.call_function", "__wrapped__"),
    "_function_hook": (
        "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function.__call__",
        "_xpu_hook",
    ),
    "_data_hook": ("tensorflow.python.data.util.structure:normalize_element", "__wrapped__"),
    "_keras_hook": ("keras.src.trainers.trainer:model_supports_jit", "__wrapped__"),
    "_batches_hook": (
        "keras.src.trainers.data_adapters.array_data_adapter:ArrayDataAdapter.get_tf_dataset",
        "__wrapped__",
    ),
}


@pytest.mark.skipif(not is_tested_pair(), reason="another TensorFlow or Keras than requirements-dev.txt names")
@pytest.mark.parametrize("hook", _hooks.HOOKS)
def test_is_in_force(hook, xpu_device):
    path, mark = REPLACED[hook]
    module, _, names = path.partition(":")
    value = importlib.import_module(module)
    for name in names.split("."):
        value = getattr(value, name)
    assert hasattr(value, mark), f"{hook} does not replace {path}: {_hooks.HOOKS[hook]}"
