"""Fixtures of the tests, and pytest's hooks that leave tests out and report failures."""

import faulthandler
import os
import pathlib
import subprocess
import time
import venv

import pytest

pytest.register_assert_rewrite("tests.support")  # its checks say what they compared, as those of tests do

import tensorflow_xpu  # noqa: E402
from tests.hooks.each_off import left_out  # noqa: E402
from tests.support.installed import PACKAGES, ROOT  # noqa: E402
from tests.support.plugin_site import PluginSite  # noqa: E402
from tests.support.requirements import need  # noqa: E402

# The folder for what tools/run_tests.py repeats at the end of a run of many steps.
REPORTS = os.environ.get("XPU_TESTS_REPORTS")


@pytest.hookimpl(trylast=True)  # after pytest's own use of faulthandler
def pytest_configure(config):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if REPORTS and worker:  # where it was when it died, if it does; a killed one says nothing
        config.stash[WORKERS_REPORT] = file = open(pathlib.Path(REPORTS) / worker, "w")  # noqa: SIM115
        faulthandler.enable(file)
    config.addinivalue_line("markers", "without_isolation: does not depend on isolation, or chooses it for itself")
    config.addinivalue_line("markers", "host_only: says nothing about the other backends, or takes too long on them")
    config.addinivalue_line("markers", "slow: takes longer than `make test` has time for; `make test-all` runs it")
    config.addinivalue_line("markers", "of_hooks(*names): is about these hooks, or needs them: left out where one is")


def pytest_collection_modifyitems(config, items):
    """Leaves out the tests of hooks that an option leaves out, and of those that need them; never by a hook's state."""
    names = left_out()
    of_these = [item for item in items if names & {n for mark in item.iter_markers("of_hooks") for n in mark.args}]
    if of_these:
        config.hook.pytest_deselected(items=of_these)
        items[:] = [item for item in items if item not in of_these]


LEFT_OUT = "left out for time"

WORKERS_REPORT = pytest.StashKey()  # stays open

# So many characters of a failed test's report are repeated at the end of a run of many steps.
REPORT = 3000


def pytest_runtest_setup(item):
    """Leaves out what has not begun when the run's time is over (tools/run_tests.py)."""
    if time.time() > float(os.environ.get("XPU_TESTS_UNTIL", "inf")):
        pytest.skip(LEFT_OUT)
    if os.environ.get("TF_XPU_SUBDEVICE") == "XPU_OPENCL":
        need_opencl()


def pytest_ignore_collect(collection_path, config):
    """Does not look into folders of slow tests where those are deselected: they need packages that only they need."""
    of_slow_tests = collection_path.parent == ROOT / "tests" and collection_path.name in SLOW_FOLDERS
    return True if of_slow_tests and "not slow" in config.option.markexpr else None


def pytest_pycollect_makemodule(module_path):
    """Fails before a file is imported that needs such a package, and says how to install it."""
    if module_path.parent.name in SLOW_FOLDERS:
        need(SLOW_FOLDERS[module_path.parent.name], file="requirements-search.txt")


# Folders whose tests are all slow, and the package that each needs.
SLOW_FOLDERS = {"nnsmith": "nnsmith", "onnx_nodes": "onnx"}


def need_opencl():
    """Fails where no driver of OpenCL is installed: the tests of that backend would say nothing."""
    if not list(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        pytest.fail("no driver of OpenCL is installed. Fix: apt-get install pocl-opencl-icd", pytrace=False)


@pytest.fixture
def opencl_driver():
    """For tests of the OpenCL backend, whichever backend the other tests run on."""
    need_opencl()


def pytest_terminal_summary(terminalreporter):
    """Says where a worker died, and tells tools/run_tests.py how many tests were, and what failed."""
    for path in sorted(pathlib.Path(REPORTS).glob("gw*")) if REPORTS else ():
        if text := path.read_text():
            terminalreporter.section(f"worker {path.name} died here")
            terminalreporter.write_line(text[:REPORT])
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(isinstance(report.longrepr, tuple) and LEFT_OUT in report.longrepr[2] for report in skipped)
    if count and "XPU_TESTS_LEFT_OUT" in os.environ:
        pathlib.Path(os.environ["XPU_TESTS_LEFT_OUT"]).write_text(f"{count} tests")
    failed = terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", [])
    if failed and REPORTS:
        reports = [f"{report.nodeid}\n{report.longreprtext[-REPORT:]}\n" for report in failed]
        with (pathlib.Path(REPORTS) / "failed").open("a") as file:  # a step may run pytest several times
            file.write("\n".join([*reports[:20], ""]))


@pytest.fixture(scope="session")
def xpu_device():
    """The device under test, as its users write it."""
    import tensorflow as tf

    devices = [device.name for device in tf.config.list_physical_devices("XPU")]
    if not devices:
        pytest.fail("TensorFlow lists no XPU: `python -m tensorflow_xpu doctor` says why", pytrace=False)
    return "/xpu:0"


@pytest.fixture(scope="session", autouse=True)
def hooks_stay_on():
    """A hook that fails is taken out with one line, which nobody would read here."""
    yield
    off = [(hook.name, hook.state) for hook in tensorflow_xpu.hooks.HOOKS if hook.state.startswith("off: ")]
    assert off == []


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory):
    """A Python with an empty site-packages, so that nothing but what a test puts on its path is found."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, symlinks=True, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A site-packages folder with everything that is installed, except this plugin."""
    folder = tmp_path_factory.mktemp("packages") / "site-packages"
    folder.mkdir()
    for entry in PACKAGES.iterdir():
        if not entry.name.startswith(("tensorflow-plugins", "tensorflow_xpu", "__pycache__")):
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture
def plugin_site(tmp_path, packages, bare_python):
    return PluginSite(tmp_path, packages, bare_python)


@pytest.fixture(scope="session")
def compile_plugin(tmp_path_factory):
    """Compiles a C++ file against TensorFlow's C headers and the loader's parts: (source text or path, defines)."""
    folder = tmp_path_factory.mktemp("compiled")
    include = PACKAGES / "tensorflow" / "include"
    parts = [ROOT / "tensorflow_plugin" / "loader" / name for name in ("process.cc", "stand_in.cc")]

    def compile_source(source, name, *options):
        path = source
        if not isinstance(source, pathlib.Path):
            path = folder / f"{name}.cc"
            path.write_text(source)
        library = folder / f"{name}.so"
        command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{ROOT}"]
        command += ["-isystem", str(include), *options, str(path), *map(str, parts), "-o", str(library), "-ldl"]
        subprocess.run(command, check=True)
        return library

    return compile_source


@pytest.fixture
def all_hooks(monkeypatch):
    """For tests of hooks in processes of their own: these have every hook, whichever the tests run without."""
    for name in ("TF_XPU_HOOKS", "TF_XPU_HOOKS_WITHOUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def no_options(monkeypatch):
    """Nothing is chosen but what a test chooses, whatever the tests run with."""
    for name in [name for name in os.environ if name.startswith("TF_XPU_") and name != "TF_XPU_CONFIG"]:
        monkeypatch.delenv(name)
