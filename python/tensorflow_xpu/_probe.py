"""Run by the doctor in a process of its own: imports TensorFlow, computes on the XPU and prints what it saw as JSON.

A process of its own because a broken installation can end the one that imports TensorFlow.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from tensorflow_xpu._subdevice import device_type


def compute(tf: Any) -> dict[str, Any]:
    """Runs a matrix product and a ReLU on the first device, eagerly and in a graph, and compares with the CPU."""
    import numpy as np

    # Whole numbers of few bits, which are exact in TF32, too.
    generator = np.random.default_rng(7)
    a = generator.integers(-8, 9, (64, 96)).astype(np.float32)
    b = generator.integers(-8, 9, (96, 32)).astype(np.float32)
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)

    def on_xpu() -> Any:
        with tf.device(f"/device:{device_type()}:0"):
            return tf.nn.relu(tf.linalg.matmul(a, b))

    tf.config.set_soft_device_placement(False)
    try:
        results = {"eager": on_xpu(), "graph": tf.function(on_xpu)()}
    finally:
        tf.config.set_soft_device_placement(True)
    return {
        "device": results["eager"].device,
        "max_error": {mode: float(np.abs(value.numpy() - expected).max()) for mode, value in results.items()},
        "tolerance": 1e-4,
    }


def observe() -> dict[str, Any]:
    """Everything the doctor reports that needs TensorFlow in the process."""
    import tensorflow as tf

    from tensorflow_xpu import _core, _devices, dlpack, hooks

    seen: dict[str, Any] = {
        "tensorflow": tf.__version__,
        "tensorflow_path": tf.sysconfig.get_lib(),
        "physical_devices": [device.name for device in tf.config.list_physical_devices()],
        "loader": _devices.loader_report(),
        "core": _devices.core_description(),
        "compute": None,
        "compute_error": None,
        "keras": None,
        "hooks": [],
        "c_api_missing": dlpack.c_api_missing,
    }
    if tf.config.list_physical_devices(device_type()):
        try:
            seen["compute"] = compute(tf)
        except Exception as error:
            seen["compute_error"] = f"{type(error).__name__}: {error}"
        with contextlib.suppress(ImportError):  # of Keras, which need not be there
            import keras

            seen["keras"] = keras.__version__
        seen["hooks"] = [*hooks.report(), *_core.internals()]
    return seen


if __name__ == "__main__":
    # The report goes to a file: TensorFlow and its plugins may print anything anywhere.
    report = json.dumps(observe())
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(report)
