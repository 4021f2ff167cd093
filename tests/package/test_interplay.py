"""Beside what shares a process with TensorFlow, and in what runs programs: PyTorch and JAX, a notebook, PyInstaller."""

import json
import os
import subprocess

import pytest

from tests.conftest import LEFT_OUT
from tests.support.processes import environment_of, run
from tests.support.requirements import need

pytestmark = [pytest.mark.slow, pytest.mark.host_only, pytest.mark.without_isolation]


# The computations of each library: products and a convolution on threads of its own, of the same numbers.
LIBRARIES = {
    "torch": """
import torch
def torch_computes(x, w, image, filters):
    product = torch.from_numpy(x) @ torch.from_numpy(w)
    return product.numpy(), torch.nn.functional.conv2d(torch.from_numpy(image), torch.from_numpy(filters)).numpy()
""",
    "jax": """
import jax
def jax_computes(x, w, image, filters):
    convolved = jax.lax.conv(jax.numpy.asarray(image), jax.numpy.asarray(filters), (1, 1), "VALID")
    return jax.device_get(jax.jit(jax.numpy.matmul)(x, w)), jax.device_get(convolved)
""",
}
TENSORFLOW = """
import tensorflow as tf
def tensorflow_computes(x, w, image, filters):
    with tf.device("/xpu:0"):
        product = tf.function(tf.matmul)(x, w)
        convolved = tf.nn.conv2d(image.transpose(0, 2, 3, 1), filters.transpose(2, 3, 1, 0), 1, "VALID")
        assert product.device.endswith("XPU:0") and convolved.device.endswith("XPU:0"), (product, convolved)
    return product.numpy(), convolved.numpy().transpose(0, 3, 1, 2)
"""
COMPARE = """
import json, threading
import numpy as np
generator = np.random.default_rng(7)
shapes = [(300, 400), (400, 200), (2, 3, 40, 40), (8, 3, 5, 5)]
# Small integers: sums are exact in float32, whoever computes them in whichever order.
arrays = [generator.integers(-4, 5, shape).astype("float32") for shape in shapes]
x, w, image, filters = arrays
expected = x.astype("float64") @ w, np.einsum(
    "nchwij,ocij->nohw", np.lib.stride_tricks.sliding_window_view(image.astype("float64"), (5, 5), (2, 3)), filters)
wrong = []
def check(computes):
    for _ in range(5):
        wrong.extend(computes.__name__ for a, b in zip(computes(*arrays), expected) if not np.array_equal(a, b))
computers = [f for name, f in sorted(globals().items()) if name.endswith("_computes")]
for f in computers * 2:  # in turns, and at the same time
    check(f)
threads = [threading.Thread(target=check, args=(f,)) for f in computers]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps([wrong, [f.__name__ for f in computers]]))
"""


@pytest.mark.parametrize("first", ["tensorflow", "others"])
@pytest.mark.parametrize("names", [["torch"], ["jax"], ["torch", "jax"]], ids="+".join)
def test_other_libraries(names, first):
    """Imported before or after TensorFlow, all compute what is right, in turns and at once, and the process ends."""
    need(*names)
    others = "".join(LIBRARIES[name] for name in names)
    outcome = run("-c", (TENSORFLOW + others if first == "tensorflow" else others + TENSORFLOW) + COMPARE)
    assert outcome.returncode == 0, outcome
    wrong, ran = outcome.json
    assert wrong == [] and ran == sorted(f"{name}_computes" for name in [*names, "tensorflow"])
    assert outcome.warnings == [], outcome


CELLS = [
    "import tensorflow as tf, tensorflow_xpu\nwith tf.device('/xpu:0'):\n    v = tf.Variable([1.0, 2.0])",
    "@tf.function\ndef f(x):\n    v.assign_add(2 * x)\n    if tf.reduce_sum(v) > 4:\n        x = 9 * v\n    return x",
    "with tf.device('/xpu:0'):\n    out = f(tf.constant([1.0, 1.0]))\nprint(out.device[-5:], out.numpy().tolist())",
    "tensorflow_xpu.list_physical_devices('XPU')[0].name",
    "import sys; print('to the terminal', file=sys.stderr); tf.raw_ops.MatMul(a=[[1.0]], b=[1.0])",
    "with tf.device('/xpu:0'):\n    print(tf.reduce_sum(v).numpy())",
]


def test_notebook(tmp_path):
    """Cells run in a kernel: functions whose source is in a cell, an error that leaves the kernel alive."""
    need("nbclient", "ipykernel")
    code = f"""
import json
import os
import subprocess
import nbclient, nbformat
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in {CELLS!r}])
client = nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3", allow_errors=True)
client.execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""
    outcome = run("-c", code, cwd=tmp_path)
    assert outcome.returncode == 0, outcome
    outputs = outcome.json
    printed = [[o.get("text", "").strip() for o in cell if o.get("name") == "stdout"] for cell in outputs]
    assert printed[2] == ["XPU:0 [27.0, 36.0]"], outputs
    assert outputs[3][-1]["data"]["text/plain"] == "'/physical_device:XPU:0'", outputs[3]
    errors = [[o for o in cell if o["output_type"] == "error"] for cell in outputs]
    assert [len(found) for found in errors] == [0, 0, 0, 0, 1, 0], outputs
    assert errors[4][0]["ename"] == "InvalidArgumentError"
    assert printed[5] == ["7.0"], outputs[5]


FROZEN = """
import json, sys
import numpy as np, tensorflow as tf
with tf.device("/xpu:0"):
    x = tf.reshape(tf.range(6.0), (2, 3))
    product = tf.matmul(x, x, transpose_b=True)
import tensorflow_xpu
view = np.from_dlpack(product)
print(json.dumps([getattr(sys, "frozen", False), product.device[-5:], product.numpy().tolist(), view.tolist(),
                  tensorflow_xpu.__file__, tensorflow_xpu.dlpack.c_api_missing]))
"""


def test_frozen(tmp_path):
    """A program made by PyInstaller, which knows nothing of the plugin, runs on the XPU where nothing is installed."""
    need("PyInstaller")
    if "XPU_TESTS_UNTIL" in os.environ:
        pytest.skip(f"{LEFT_OUT}: PyInstaller takes minutes for TensorFlow")
    program = tmp_path / "program.py"
    program.write_text(FROZEN)
    folders = ["--distpath", tmp_path / "dist", "--workpath", tmp_path / "work", "--specpath", tmp_path]
    # TensorFlow and Keras import these if they are there, which makes the folder large and the test slow.
    without = [f"--exclude-module={name}" for name in ("torch", "jax", "scipy", "pandas", "matplotlib", "IPython")]
    options = ["--noconfirm", "--log-level", "WARN", *without, *folders]
    outcome = run("-m", "PyInstaller", *options, program, timeout=1800)
    assert outcome.returncode == 0, outcome
    made = tmp_path / "dist" / "program"
    ended = subprocess.run(
        [made / "program"], env=environment_of({"PATH": "/usr/bin"}), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended
    frozen, device, product, view, file, missing = json.loads(ended.stdout.splitlines()[-1])
    assert frozen and device == "XPU:0" and product == view == [[5, 14], [14, 50]]
    assert file.startswith(str(made)) and missing is None
    assert "tensorflow_xpu: " not in ended.stderr
