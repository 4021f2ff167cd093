"""A package of which half is of another release: one clear line, and right results."""

import pytest

import tensorflow_xpu
from tests.support.installed import MINOR, SHARED

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

RELEASE = tensorflow_xpu.__version__
HERE, OTHER = (b"xpu_release_%s\0" % text.replace(".", "_").encode() for text in (RELEASE, "9.9.9"))
PROGRAM = """
import json
import numpy as np
import tensorflow as tf
f = tf.function(lambda x: tf.tanh(x) + 1)
found = [float(f(tf.constant(0.5))) for _ in range(4)] + [float(tf.reduce_sum(tf.ones([3])))]
import keras
model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
found += model.predict(np.ones([4, 2]), verbose=0).ravel().tolist()
found += model.fit(np.ones([4, 2]), np.ones([4, 1]), verbose=0).history["loss"]
import tensorflow_xpu
x = tf.constant([1.0, 2.0])
found += np.from_dlpack(x * 2).tolist() + tensorflow_xpu.dlpack.from_dlpack(np.ones(2, np.float32)).numpy().tolist()
print(json.dumps([[device.device_type for device in tf.config.list_physical_devices()], found]))
"""
NUMBERS = [1.4621171951293945] * 4 + [3.0, 2, 2, 2, 2, 1.0, 2, 4, 1, 1]


def replace(path, before, after):
    data = path.read_bytes()
    assert before in data, path
    path.write_bytes(data.replace(before, after))


def interop_of(site):
    (path,) = site.package.glob(f"_interop_{MINOR}.*")
    return path


def python_of_another_release(site):
    """As where the Python files are the only ones that were replaced."""
    replace(site.package / "_version.py", RELEASE.encode(), b"9.9.9")


def new_files_beside_an_old_core(site):
    """As where a running program keeps the files in lib/ from being replaced."""
    python_of_another_release(site)
    replace(interop_of(site), HERE, OTHER)


def interop_of_another_release(site):
    replace(interop_of(site), HERE, OTHER)


def run(site):
    outcome = site.run_code(PROGRAM)
    assert outcome.returncode == 0, outcome
    devices, numbers = outcome.json
    assert numbers == pytest.approx(NUMBERS, 1e-5), outcome
    return devices, outcome.warnings


def test_of_one_release_it_is_silent(plugin_site):
    assert run(plugin_site) == (["CPU", "XPU"], [])


@pytest.mark.of_hooks("reading", "calls", "functions")
@pytest.mark.parametrize(
    ("change", "off", "why"),
    [
        (python_of_another_release, "arrays, reading, calls and functions", "the core is not of release 9.9.9"),
        (new_files_beside_an_old_core, "arrays, reading, calls and functions", "the core is not of release 9.9.9"),
        (interop_of_another_release, "reading, calls and functions", f"the interop module is not of release {RELEASE}"),
    ],
)
def test_python_and_the_core_of_two_releases(plugin_site, change, off, why):
    change(plugin_site)
    devices, lines = run(plugin_site)
    assert devices == ["CPU", "XPU"]
    assert len(lines) == 1 and lines[0].startswith(f"tensorflow_xpu: the hooks {off} are off: {why}"), lines
    assert "pip install --force-reinstall" in lines[0]


def test_the_core_and_what_it_shares_of_two_releases(plugin_site):
    """They have objects of C++ in common, so there is no XPU rather than a crash."""
    replace(plugin_site.lib / SHARED, HERE, OTHER)
    devices, lines = run(plugin_site)
    assert devices == ["CPU"]
    assert len(lines) == 1 and f"undefined symbol: {HERE[:-1].decode()}" in lines[0], lines
    assert "so no XPU is available. Fix: pip install --force-reinstall" in lines[0]
