"""The package tensorflow_xpu."""

import tensorflow_xpu
from tests.support.processes import run_code


def test_tensorflow_names_the_backend(xpu_device):
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("XPU")[0])
    assert details == {"device_name": tensorflow_xpu.get_subdevice_mapping()["XPU"]}


def test_tensorflow_does_not_import_the_package(xpu_device):
    """Its hooks alone: the package replaces TensorFlow's DLPack, which is for those who import it."""
    code = """
        import sys
        import tensorflow as tf
        names = [name for name in sys.modules if name.startswith("tensorflow_xpu")]
        import tensorflow_xpu
        print("tensorflow_xpu" in names, "tensorflow_xpu.hooks" in names, tensorflow_xpu.hooks.HOOKS[0].state)
    """
    outcome = run_code(code)
    assert outcome.stdout.split() == ["False", "True", "on"], outcome
