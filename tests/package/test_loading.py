"""Whatever is wrong with the plugin or beside it, `import tensorflow` works and one line says why there is no XPU."""

import shutil
import struct
import subprocess

import pytest

from tests.support.installed import BACKENDS, CORE, ROOT, SHARED, TENSORFLOW
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

# Uses TensorFlow as far as a declined plugin could disturb it: devices, ops, a graph with its optimizers, the profiler.
USE_TENSORFLOW = """
import json, tempfile
import tensorflow as tf
assert float(tf.function(lambda x: tf.reduce_sum(x * x + 1))(tf.ones(4))) == 8
tf.profiler.experimental.start(tempfile.mkdtemp())
tf.profiler.experimental.stop()
print(json.dumps([d.name for d in tf.config.list_physical_devices()]))
"""
CPU = ["/physical_device:CPU:0"]
BOTH = ["/physical_device:CPU:0", "/physical_device:XPU:0"]

CORE_SOURCE = """
    #include "tensorflow/c/tf_status.h"
    #include "tensorflow_plugin/loader/stand_in.h"
    #define EXPORT extern "C" __attribute__((visibility("default")))
"""


def declined(outcome, *words):
    """Asserts that TensorFlow works without an XPU and that one line says why, in these words, and what to do."""
    assert outcome.returncode == 0, outcome
    assert outcome.json == CPU, outcome
    assert len(outcome.warnings) == 1, outcome
    for word in (*words, "Fix: "):
        assert word in outcome.warnings[0], outcome


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_good_plugin_is_silent(plugin_site, backend):
    """All its kernels are registered, too: one that is not costs a line."""
    outcome = plugin_site.run_code(USE_TENSORFLOW, TF_XPU_SUBDEVICE=backend)
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert outcome.warnings == []


@pytest.mark.parametrize("chosen", [{}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "77"}])
def test_idle_openmp_threads_poll_briefly_unless_the_user_chose(plugin_site, chosen):
    # A child gets the environment that C functions change; os.environ has what it was before.
    code = "import subprocess, tensorflow; subprocess.run(['printenv', 'GOMP_SPINCOUNT'])"
    outcome = plugin_site.run_code(code, OMP_DISPLAY_ENV="verbose", **chosen)
    assert outcome.stdout.strip() == chosen.get("GOMP_SPINCOUNT", ""), outcome
    assert ("GOMP_SPINCOUNT = '1000'" in outcome.stderr) == (not chosen), outcome


def test_disabled(plugin_site):
    declined(plugin_site.run_code(USE_TENSORFLOW, TF_XPU_DISABLE="1"), "TF_XPU_DISABLE=1", "unset")


def test_not_disabled(plugin_site):
    outcome = plugin_site.run_code(USE_TENSORFLOW, TF_XPU_DISABLE="0")
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert outcome.warnings == []


def test_another_minor_version_of_tensorflow(plugin_site):
    """The newest that there is a core for is the one to install."""
    others = [plugin_site.lib / f"libtensorflow_xpu_core_2_{minor}.so" for minor in (10, 7, 9)]
    for other in others:
        shutil.copy(plugin_site.core, other)
    for core in set(plugin_site.lib.glob("libtensorflow_xpu_core_*.so")) - set(others):
        core.unlink()
    outcome = plugin_site.run_code(USE_TENSORFLOW)
    words = "TensorFlow is version 2.", "built for 2.7, 2.9 and 2.10", 'pip install "tensorflow-cpu==2.10.*"'
    declined(outcome, *words)


def test_the_core_for_the_running_version_is_chosen(plugin_site):
    shutil.copy(plugin_site.core, plugin_site.lib / "libtensorflow_xpu_core_2_19.so")
    (plugin_site.lib / "libtensorflow_xpu_core_2_22.so").write_text("not for this one")
    outcome = plugin_site.run_code(USE_TENSORFLOW)
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert outcome.warnings == []


def test_the_package_is_gone(plugin_site):
    shutil.rmtree(plugin_site.package)
    declined(plugin_site.run_code(USE_TENSORFLOW), "no plugin core was found in", "--force-reinstall")


@pytest.mark.parametrize("size", [0, 20, 1000, 8000])
def test_the_core_is_cut_short(plugin_site, size):
    plugin_site.core.write_bytes(plugin_site.core.read_bytes()[:size])
    declined(plugin_site.run_code(USE_TENSORFLOW), CORE, "is damaged", "--force-reinstall")


def test_the_core_is_cut_short_in_its_last_segment(plugin_site):
    """It could be loaded, and crash later."""
    data = plugin_site.core.read_bytes()
    # The program headers of an ELF file: their offset, size and number are at 0x20, 0x36 and 0x38.
    (offset,), (size, number) = struct.unpack_from("<Q", data, 0x20), struct.unpack_from("<HH", data, 0x36)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(number)]
    loaded = 1  # PT_LOAD
    end = max(begin + length for kind, _, begin, _, _, length in headers if kind == loaded)
    plugin_site.core.write_bytes(data[: end - 1])
    declined(plugin_site.run_code(USE_TENSORFLOW), CORE, "is damaged", "--force-reinstall")


def test_a_library_of_the_core_is_cut_short(plugin_site):
    library = plugin_site.lib / "libgomp.so.1"
    library.write_bytes(library.read_bytes()[:100000])
    declined(plugin_site.run_code(USE_TENSORFLOW), "libgomp.so.1", "is damaged", "--force-reinstall")


@pytest.mark.parametrize("name", ["libdnnl.so.3", SHARED])
def test_a_library_of_the_core_is_gone(plugin_site, name):
    (plugin_site.lib / name).unlink()
    declined(plugin_site.run_code(USE_TENSORFLOW), "does not load", name, "--force-reinstall")


@pytest.fixture
def as_version(tmp_path):
    """Makes TensorFlow say that it is another version: the environment for that."""

    def environment(version):
        library = tmp_path / "version.so"
        source = f'extern "C" const char* TF_Version() {{ return "{version}"; }}'
        command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)]
        subprocess.run(command, input=source, text=True, check=True)
        return {"LD_PRELOAD": str(library)}

    return environment


@pytest.mark.of_hooks("eager_tensors", "reading", "calls", "functions")
@pytest.mark.parametrize("suffix", [".0-rc1", ".0-dev20260905"])
def test_a_candidate_or_nightly_with_the_same_headers(plugin_site, as_version, suffix):
    outcome = plugin_site.run_code(USE_TENSORFLOW, **as_version(TENSORFLOW.rpartition(".")[0] + suffix))
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    reads_and_calls_as_tensorflow_does(outcome)


def reads_and_calls_as_tensorflow_does(outcome):
    """The hook that looks inside eager tensors is for one release: a line says so."""
    (line,) = outcome.warnings
    assert "the hook eager_tensors is off: TensorFlow's version is " in line


@pytest.mark.parametrize("damage", ["another", "gone", "no list"])
def test_a_nightly_whose_headers_differ(plugin_site, as_version, damage):
    """The core's knowledge of TensorFlow's classes may not hold there."""
    header = "tensorflow/core/framework/op_kernel.h"
    listing = plugin_site.core.with_suffix(".abi")
    lines = listing.read_text().splitlines(keepends=True)
    (at,) = [i for i, line in enumerate(lines) if line.endswith(f" {header}\n")]
    if damage == "another":
        crc, size, name = lines[at].split(" ")
        lines[at] = f"{int(crc, 16) ^ 1:08x} {size} {name}"
    if damage == "gone":
        lines[at] = lines[at].replace("op_kernel.h", "op_kernel_2.h")
    listing.write_text("".join(lines))
    if damage == "no list":
        listing.unlink()
    nightly = TENSORFLOW.rpartition(".")[0] + ".0-dev20260905"
    words = {"another": header, "gone": "op_kernel_2.h", "no list": "for no version that it names"}[damage]
    declined(plugin_site.run_code(USE_TENSORFLOW, **as_version(nightly)), f"TensorFlow is version {nightly}", words)


@pytest.mark.of_hooks("eager_tensors", "reading", "calls", "functions")
def test_another_release_of_the_same_minor_version(plugin_site, as_version):
    outcome = plugin_site.run_code(USE_TENSORFLOW, **as_version(TENSORFLOW.rpartition(".")[0] + ".7"))
    assert outcome.json == BOTH, outcome
    reads_and_calls_as_tensorflow_does(outcome)


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        (
            "undefined",
            'extern "C" void NobodyHasThis(); EXPORT void XpuCore_SE_InitPlugin() { NobodyHasThis(); }',
            ["does not load", "undefined symbol: NobodyHasThis"],
        ),
        ("empty", "EXPORT int nothing = 0;", ["has no entry points"]),
    ],
)
def test_the_core_is_not_one(plugin_site, compile_plugin, name, body, words):
    shutil.copy(compile_plugin(CORE_SOURCE + body, name), plugin_site.core)
    declined(plugin_site.run_code(USE_TENSORFLOW), *words)


def test_the_core_fails_to_start(plugin_site, compile_plugin):
    body = """
        EXPORT void XpuCore_SE_InitPlugin(SE_PlatformRegistrationParams*, TF_Status* status) {
          TF_SetStatus(status, TF_INTERNAL, "the moon is full");
        }
        EXPORT void XpuCore_TF_InitKernel() { __builtin_trap(); }
    """
    libraries = ["-Wl,--unresolved-symbols=ignore-all", "-Wl,-z,lazy"]
    framework = plugin_site.packages / "tensorflow" / "libtensorflow_framework.so.2"
    shutil.copy(compile_plugin(CORE_SOURCE + body, "failing", str(framework), *libraries), plugin_site.core)
    declined(plugin_site.run_code(USE_TENSORFLOW), "failed to start (the moon is full)")


def test_the_core_cannot_count_its_devices(plugin_site, compile_plugin):
    body = """
        EXPORT void XpuCore_SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status*) {
          xpu::loader::StandInPlatform(params);
          params->platform->type = "XPU";
          params->platform_fns->get_device_count = [](const SP_Platform*, int* count, TF_Status* status) {
            *count = 0;
            TF_SetStatus(status, TF_INTERNAL, "the fog is thick");
          };
        }
        EXPORT void XpuCore_TF_InitKernel() { __builtin_trap(); }
    """
    libraries = ["-Wl,--unresolved-symbols=ignore-all", "-Wl,-z,lazy"]
    framework = plugin_site.packages / "tensorflow" / "libtensorflow_framework.so.2"
    shutil.copy(compile_plugin(CORE_SOURCE + body, "uncounted", str(framework), *libraries), plugin_site.core)
    declined(plugin_site.run_code(USE_TENSORFLOW), "cannot count its devices (the fog is thick)")


def test_the_hooks_are_gone(plugin_site):
    """There is an XPU all the same, and a line says what to beware of."""
    (plugin_site.package / "hooks" / "start.py").unlink()
    outcome = plugin_site.run_code(USE_TENSORFLOW)
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert len(outcome.warnings) == 1, outcome
    for word in ("hooks/start.py cannot be read", "jit_compile=False", "Fix: "):
        assert word in outcome.warnings[0], outcome


def test_a_core_without_devices(plugin_site, compile_plugin):
    body = """
        EXPORT void XpuCore_SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status*) {
          xpu::loader::StandInPlatform(params);
          params->platform->type = "XPU";
        }
        EXPORT void XpuCore_TF_InitKernel() {}
    """
    shutil.copy(compile_plugin(CORE_SOURCE + body, "no_devices"), plugin_site.core)
    outcome = plugin_site.run_code(USE_TENSORFLOW)
    assert outcome.returncode == 0, outcome
    assert outcome.json == CPU


def test_the_same_folder_under_two_names(plugin_site, tmp_path):
    """As in Fedora's virtual environments, where lib64 is a link to lib."""
    (tmp_path / "lib64").symlink_to(tmp_path)
    path = f"{plugin_site.folder}:{tmp_path}/lib64/site-packages:{plugin_site.packages}"
    outcome = plugin_site.run_code(USE_TENSORFLOW, PYTHONPATH=path)
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert outcome.warnings == []


def test_the_same_folder_under_two_names_and_disabled(plugin_site, tmp_path):
    """Each time it offers no devices under another name: the same twice would end the process."""
    (tmp_path / "lib64").symlink_to(tmp_path)
    path = f"{plugin_site.folder}:{tmp_path}/lib64/site-packages:{plugin_site.packages}"
    declined(plugin_site.run_code(USE_TENSORFLOW, PYTHONPATH=path, TF_XPU_DISABLE="1"), "TF_XPU_DISABLE=1")


def test_the_same_folder_in_the_environment(plugin_site):
    outcome = plugin_site.run_code(USE_TENSORFLOW, TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(plugin_site.plugins))
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert outcome.warnings == []


def test_a_second_copy(plugin_site, tmp_path):
    copy = tmp_path / "copy" / "tensorflow-plugins"
    shutil.copytree(plugin_site.plugins, copy)
    shutil.copytree(plugin_site.package, tmp_path / "copy" / "tensorflow_xpu", symlinks=True)
    outcome = plugin_site.run_code(USE_TENSORFLOW, TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(copy))
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    assert len(outcome.warnings) == 1, outcome
    assert f"the second copy of the plugin, {copy}" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("other_type", (), "another plugin already provides the device type XPU"),
        (
            "other_platform",
            ('-DPLATFORM_NAME="XPU_HOST"', '-DDEVICE_TYPE="YPU"'),
            "another plugin already provides the platform XPU_HOST",
        ),
    ],
)
def test_another_plugin_came_first(plugin_site, compile_plugin, name, options, words):
    other = compile_plugin(ROOT / "tests" / "support" / "other_owner.cc", name, *options)
    hidden = plugin_site.plugins.rename(plugin_site.folder / "later-plugins")
    code = f"""
import tensorflow
from tensorflow.python.framework import load_library
load_library.load_pluggable_device_library({str(other)!r})
load_library.load_pluggable_device_library({str(hidden)!r})
"""
    declined(plugin_site.run_code(code + USE_TENSORFLOW), words)


def test_no_file_is_left_open():
    """Where a program shows all warnings, none is about us."""
    outcome = run_code(USE_TENSORFLOW, environment={"PYTHONWARNINGS": "default"})
    assert outcome.returncode == 0, outcome
    assert outcome.json == BOTH
    said = [line for line in outcome.stderr.splitlines() if "Warning" in line and "start.py" in line]
    assert said == [], outcome
