"""load_plugin and load_plugin_with_highest_priority, in the four scenarios of RFC 262, and with what is no plugin."""

import shutil

import pytest

from tensorflow_xpu import SUBDEVICE_TYPES
from tests.support.installed import PACKAGES, ROOT
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.usefixtures("no_options")]


# Uses the devices of the type: a kernel that TensorFlow has for every device.
PRELUDE = """
import json
import tensorflow_xpu
def computes_on(name):
    import tensorflow as tf
    with tf.device(name):
        x = tf.identity([[1.0, 2.0], [3.0, 4.0]]) if "XPU" not in name else tf.constant([[1.0, 2.0], [3.0, 4.0]]) + 0
    return [x.device.rpartition("/device:")[2], x.numpy().tolist()]
def brief(devices):
    return [[d.name, d.device_type, d.subdevice_type, d.enabled] for d in devices]
def refusal(f):
    try:
        f()
    except tensorflow_xpu.XPUError as error:
        return str(error)
"""
NUMBERS = [[1.0, 2.0], [3.0, 4.0]]


@pytest.fixture(scope="module")
def plugins(compile_plugin, tmp_path_factory):
    """Paths of small plugins of two devices, by type; "second" is another of the type YPU."""
    source = ROOT / "tensorflow_plugin" / "conformance" / "tests" / "sample_plugin.cc"
    made = compile_plugin(source, "sample", '-DSAMPLE_NAME="YPU_SAMPLE"', '-DSAMPLE_TYPE="YPU"', "-lpthread")
    folder = tmp_path_factory.mktemp("plugins")
    found = {}
    for name, platform, device_type in [("YPU", b"YPU", b"YPU"), ("second", b"ZPU", b"YPU"), ("GPU", b"GPU", b"GPU")]:
        data = (
            made.read_bytes().replace(b"YPU_SAMPLE", platform + b"_SAMPLE").replace(b"\0YPU\0", b"\0%s\0" % device_type)
        )
        found[name] = folder / f"lib{name}.so"
        found[name].write_bytes(data)
    data = made.read_bytes().replace(b"YPU_SAMPLE", b"ANO_SAMPLE").replace(b"\0YPU\0", b"\0XPU\0")
    found["XPU"] = folder / "libother.so"
    found["XPU"].write_bytes(data)
    return found


def ran(code, **environment):
    outcome = run_code(PRELUDE + code, environment=environment)
    assert outcome.returncode == 0, outcome
    return outcome


def test_a_new_type_beside_ours(plugins):
    """Scenarios 1 and 3: a new type, and two plugins of different types in one program."""
    outcome = ran(f"""
loaded = brief(tensorflow_xpu.load_plugin({str(plugins["YPU"])!r}))
again = brief(tensorflow_xpu.load_plugin({str(plugins["YPU"])!r}))
skipped = tensorflow_xpu.load_plugin({str(plugins["second"])!r})
late = refusal(lambda: tensorflow_xpu.load_plugin_with_highest_priority({str(plugins["second"])!r}))
values = [computes_on("/YPU:1"), computes_on("/XPU:0")]
later = refusal(lambda: tensorflow_xpu.load_plugin({str(plugins["GPU"])!r}))
types = [d.device_type for d in tensorflow_xpu.list_physical_devices(enabled=True)]
print(json.dumps([loaded, again, skipped, late, values, later, types]))
""")
    loaded, again, skipped, late, values, later, types = outcome.json
    assert loaded == again == [[f"/physical_device:YPU:{i}", "YPU", "YPU_SAMPLE", True] for i in range(2)]
    assert skipped == []
    (notice,) = outcome.warnings
    assert f"{plugins['second']} is skipped, since the device type YPU is that of {plugins['YPU']}. Fix: " in notice
    assert f"came after TensorFlow had given the device type YPU to {plugins['YPU']}, which cannot be undone" in late
    assert values == [["YPU:1", NUMBERS], ["XPU:0", NUMBERS]]
    assert "came after TensorFlow had created its devices" in later
    assert sorted(types) == ["CPU", "XPU", "YPU", "YPU"]


def test_the_type_gpu(plugins):
    """Scenario 2; ours as a GPU is in tests/runtime/test_gpu.py."""
    outcome = ran(f"""
loaded = brief(tensorflow_xpu.load_plugin({str(plugins["GPU"])!r}))
print(json.dumps([loaded, computes_on("/GPU:0"), computes_on("/XPU:0")]))
""")
    loaded, *values = outcome.json
    assert loaded == [[f"/physical_device:GPU:{i}", "GPU", "GPU_SAMPLE", True] for i in range(2)]
    assert values == [["GPU:0", NUMBERS], ["XPU:0", NUMBERS]]


def test_two_of_one_type(plugins):
    """Scenario 4: the chosen one is loaded before ours, which steps back."""
    outcome = ran(f"""
import sys
assert "tensorflow" not in sys.modules
loaded = brief(tensorflow_xpu.load_plugin_with_highest_priority({str(plugins["XPU"])!r}))
import tensorflow as tf
with tf.device("/xpu:1"):
    device = tf.identity([1.0]).device
listed = brief(tensorflow_xpu.list_physical_devices("XPU"))
print(json.dumps([loaded, listed, device]))
""")
    loaded, listed, device = outcome.json
    assert loaded == [[f"/physical_device:XPU:{i}", "XPU", "ANO_SAMPLE", True] for i in range(2)]
    assert listed[:2] == loaded
    assert sorted(listed[2:]) == [["/physical_device:XPU:0", "XPU", name, False] for name in sorted(SUBDEVICE_TYPES)]
    assert device.endswith("XPU:1")
    (notice,) = outcome.warnings
    assert "another plugin already provides the device type XPU" in notice
    # The other way round ours stays.
    outcome = ran(f"print(json.dumps(brief(tensorflow_xpu.load_plugin({str(plugins['XPU'])!r}))))")
    assert outcome.json == []
    assert "is skipped, since the device type XPU is that of" in outcome.warnings[0]
    assert "libtensorflow_xpu_loader.so" in outcome.warnings[0]


def test_two_others_of_one_type_that_are_installed(plugins, plugin_site):
    """TensorFlow would end the process."""
    for name in ("YPU", "second"):
        shutil.copy(plugins[name], plugin_site.plugins)
    chosen = plugin_site.plugins / plugins["second"].name
    outcome = plugin_site.run_code(f"""{PRELUDE}
loaded = brief(tensorflow_xpu.load_plugin_with_highest_priority({str(chosen)!r}))
print(json.dumps([loaded, computes_on("/YPU:0"), computes_on("/XPU:0")]))
""")
    assert outcome.returncode == 0, outcome
    loaded, *values = outcome.json
    assert [device[2] for device in loaded] == ["ZPU_SAMPLE"] * 2
    assert values == [["YPU:0", NUMBERS], ["XPU:0", NUMBERS]]
    (notice,) = outcome.warnings
    assert (
        f"{plugin_site.plugins / plugins['YPU'].name} is skipped, since the device type YPU is that of {chosen}"
        in notice
    )
    assert plugin_site.run_code("import tensorflow").returncode < 0, "a TensorFlow that bears it needs no choice"


def test_what_is_no_plugin(plugins, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("not a library")
    empty = tmp_path / "folder"
    empty.mkdir()
    cases = {
        str(tmp_path / "nothing.so"): "there is no file",
        str(text): "is no PluggableDevice library that this TensorFlow could load: ",
        str(PACKAGES / "tensorflow_xpu" / "lib" / "libgomp.so.1"): "is no PluggableDevice library",
        str(empty): "is a folder: expected one library; those in it: none",
    }
    outcome = ran(f"""
import sys
seen = [refusal(lambda: tensorflow_xpu.load_plugin(path)) for path in {list(cases)!r}]
seen.append(refusal(lambda: tensorflow_xpu.load_plugin(3)))
assert "tensorflow" not in sys.modules, "nothing is done before it is known to be possible"
print(json.dumps(seen))
""")
    *seen, number = outcome.json
    for said, words in zip(seen, cases.values()):
        assert words in said
    assert "3 is no path" in number


def test_plugins_that_would_end_the_process(plugins):
    defects = ["crashes_at_registration", "refuses", "type_is_cpu", "type_is_null", "bad_name", "memset32_missing"]
    outcome = ran(f"""
import os
said = []
for os.environ["SAMPLE_DEFECT"] in {defects!r}:
    said.append(refusal(lambda: tensorflow_xpu.load_plugin_with_highest_priority({str(plugins["YPU"])!r})))
del os.environ["SAMPLE_DEFECT"]
print(json.dumps([said, computes_on("/XPU:0")]))
""")
    said, value = outcome.json
    for text in said:
        assert f"{plugins['YPU']} is no PluggableDevice library that this TensorFlow could load: " in text
        assert f"`python -m tensorflow_xpu conformance {plugins['YPU']}` says more" in text
    assert value == ["XPU:0", NUMBERS]
