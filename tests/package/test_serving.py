"""docs/serving.md: a SavedModel on the XPU without Python, and its examples."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.support.installed import ROOT
from tests.support.processes import environment_of, run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

PAGE = (ROOT / "docs" / "serving.md").read_text()
COMMANDS = next(block for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "gcc" in block)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder with `examples`, the folder `model`, and the numbers of the first answer on the CPU."""
    import keras
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("served")
    (folder / "examples").symlink_to(ROOT / "examples")
    with tf.device("/cpu:0"):
        keras.utils.set_random_seed(3)
        layers = [keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(10)]
        pixels = keras.Input((28, 28, 1), name="pixels")
        x = pixels
        for layer in layers:
            x = layer(x)
        model = keras.Model(pixels, keras.layers.Softmax()(x))
        model.export(folder / "model", verbose=False)
        request = (np.arange(784, dtype=np.float32) / 784).reshape(1, 28, 28, 1)
        return folder, model(request).numpy()[0, :4]


def in_shell(commands, folder, environment=()):
    variables = environment_of(environment)
    variables["PATH"] = f"{pathlib.Path(sys.executable).parent}:{variables['PATH']}"
    return subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env=variables, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.slow
def test_the_c_program_of_the_page(served, xpu_device):
    folder, expected = served
    done = in_shell(COMMANDS, folder)
    assert done.returncode == 0, done
    assert "serving_default_pixels:0" in done.stdout  # of saved_model_cli
    assert re.search(r"^device .*/device:XPU:0$", done.stdout, re.MULTILINE), done
    numbers = re.search(r"first answer after .* ms: (.*)", done.stdout)[1].split()
    np.testing.assert_allclose([float(number) for number in numbers], expected, rtol=1e-4)
    assert re.search(r"\d+ requests a second, 2 threads", done.stdout), done

    # The same program again, as it stands in the page but for what follows.
    setup = COMMANDS[: COMMANDS.index("gcc")]
    program = COMMANDS[COMMANDS.index("./serve") :].strip()
    (folder / "dump").mkdir()
    assert in_shell(setup + program, folder, {"TF_XPU_DUMP_FUSION": str(folder / "dump")}).returncode == 0
    dumps = [path.read_text() for path in (folder / "dump").iterdir()]
    assert any("Convolution" in text and "MatMul" in text for text in dumps), dumps  # one cluster has the whole model

    failed = in_shell(setup + program, folder, {"TF_XPU_FAULT": "command=MatMul:fail@20"})
    assert failed.returncode == 2, failed
    assert "TF_XPU_FAULT" in failed.stderr and "on XPU:0" in failed.stderr, failed
    wrong = in_shell(setup + program.replace("28 28 1", "28 27 1"), folder)
    assert wrong.returncode == 2 and "flatten/Reshape" in wrong.stderr.replace("flatten_1", "flatten"), wrong
    nothing = in_shell(setup + program.replace("pixels:0", "nothing:0"), folder)
    assert nothing.returncode == 2 and 'has no operation "serving_default_nothing"' in nothing.stderr, nothing


@pytest.mark.slow
def test_the_python_example(xpu_device, tmp_path):
    outcome = run(ROOT / "examples" / "serve.py", "200", cwd=tmp_path, timeout=900)
    assert outcome.returncode == 0, outcome
    said = re.findall(r"^(\d threads, .*): [\d,]+ requests a second$", outcome.stdout, re.MULTILINE)
    assert said == [f"{n} threads, {how}" for n in (1, 4) for how in ("one by one", "in batches")], outcome
