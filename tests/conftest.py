"""Common code of the tests: the device, fresh processes, and site-packages folders with a plugin in any condition."""

import concurrent.futures
import faulthandler
import functools
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import time
import venv

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_XPU_CONFIG", "none")  # the tests' options are the tests' choice
# PoCL, an OpenCL device on the processor: on two threads, and without a cache of its own beside the plugin's.
os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", "2")
os.environ.setdefault("POCL_KERNEL_CACHE", "0")

import pytest

pytest.register_assert_rewrite("tests.support")  # its checks say what they compared, as those of tests do

import tensorflow_xpu  # noqa: E402
from tests.support.forkserver import ForkServer  # noqa: E402
from tests.support.requirements import need  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def site_of(package):
    """The folder that an installed package lies in."""
    return pathlib.Path(importlib.util.find_spec(package).origin).parent.parent


PACKAGES, SITE = site_of("tensorflow"), site_of("tensorflow_xpu")
LOADER = "libtensorflow_xpu_loader.so"
# The TensorFlow that the tests run with, as it writes its version, and what of the plugin is for its minor version.
TENSORFLOW = next(
    distribution.version.replace("rc", "-rc").replace(".dev", "-dev")
    for distribution in importlib.metadata.distributions(path=[str(PACKAGES)])
    if distribution.metadata["Name"].replace("_", "-") in ("tensorflow", "tensorflow-cpu", "tf-nightly-cpu")
)
MINOR = "_".join(TENSORFLOW.split(".")[:2])
SHARED = "libtensorflow_xpu_backends.so"
CORE = f"libtensorflow_xpu_core_{MINOR}.so"


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
    """Tells tools/run_tests.py how many tests were, and what failed."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(isinstance(report.longrepr, tuple) and LEFT_OUT in report.longrepr[2] for report in skipped)
    if count and "XPU_TESTS_LEFT_OUT" in os.environ:
        pathlib.Path(os.environ["XPU_TESTS_LEFT_OUT"]).write_text(f"{count} tests")
    failed = terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", [])
    if failed and REPORTS:
        reports = [f"{report.nodeid}\n{report.longreprtext[-REPORT:]}\n" for report in failed]
        (pathlib.Path(REPORTS) / "failed").write_text("\n".join(reports[:20]))


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


def is_bus(bus, ordinal):
    """True if a device of that ordinal may say it is at that PCI address. Hardware on a bus is where it is, and several
    XPUs may be one piece. Other devices are in a domain in which no machine has a device.
    """
    real = os.environ.get("TF_XPU_SUBDEVICE") == "XPU_OPENCL" and not bus.startswith("ffff:")
    wanted = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]" if real else rf"ffff:{ordinal:02x}:00\.0"
    return re.fullmatch(wanted, bus) is not None


# The subdevice types that have a device where tests run: tools/setup.sh installs a driver of OpenCL, and no GPU.
BACKENDS = tuple(name for name in tensorflow_xpu.SUBDEVICE_TYPES if name != "XPU_CUDA")


class Outcome:
    """How a process ended and what it said."""

    def __init__(self, completed):
        self.returncode = completed.returncode
        self.stdout, self.stderr = completed.stdout, completed.stderr
        self.warnings = [line for line in self.stderr.splitlines() if line.startswith("tensorflow_xpu: ")]

    def __repr__(self):
        return f"exit code {self.returncode}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr[-4000:]}"

    @property
    def json(self):
        """The last line of stdout, read as JSON."""
        return json.loads(self.stdout.strip().splitlines()[-1])


def environment_of(variables):
    """The environment of a process on the backend that is under test, with these variables."""
    dropped = ("PYTHON", "PYTEST", "TF_XPU_DISABLE", "TF_XPU_DEVICE_COUNT", "TF_XPU_MEMORY_LIMIT")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**inherited, "TF_CPP_MIN_LOG_LEVEL": "2", **dict(variables)}


def run(*arguments, environment=(), python=sys.executable, timeout=300, cwd=None):
    """Runs Python with these arguments."""
    completed = subprocess.run(
        [str(python), *map(str, arguments)],
        env=environment_of(environment),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        cwd=cwd,
        check=False,
    )
    return Outcome(completed)


# TensorFlow imports these if it can, though few programs use them.
IMPORTED_BY_TENSORFLOW = ("keras", "jax")


@functools.cache
def fork_server():
    """The one of this process, whose environment has the variables that no plugin reads."""
    return ForkServer({name: value for name, value in environment_of(()).items() if not read_by_plugin(name)}, SITE)


def read_by_plugin(name):
    return name.startswith("TF_XPU_")


def in_threads(work, count=4):
    """Calls work(0), work(1), ... side by side, in threads of their own; raises what one of them raises."""
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        for called in [threads.submit(work, i) for i in range(count)]:
            called.result()


def run_code(code, *, environment=(), python=sys.executable, timeout=300, cwd=None):
    """Runs Python code in a process of its own, forked from one that has imported TensorFlow where that will do."""
    code, environment = textwrap.dedent(code), environment_of(environment)
    unused = [name for name in IMPORTED_BY_TENSORFLOW if name not in code]
    code = f"import sys; sys.modules.update(dict.fromkeys({unused}))\n{code}"
    same = {name: value for name, value in environment.items() if not read_by_plugin(name)}
    if python == sys.executable and len(unused) == len(IMPORTED_BY_TENSORFLOW) and same == fork_server().environment:
        completed = fork_server().run(code, environment, timeout, cwd)
        if completed is not None:
            return Outcome(completed)
    return run("-c", code, environment=environment, python=python, timeout=timeout, cwd=cwd)


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


class PluginSite:
    """A site-packages folder with a copy of the plugin, to be damaged and then used by a fresh process."""

    def __init__(self, folder, packages, python):
        self.folder, self.packages, self.python = folder / "site-packages", packages, python
        self.plugins = self.folder / "tensorflow-plugins"
        self.package = self.folder / "tensorflow_xpu"
        self.lib = self.package / "lib"
        shutil.copytree(SITE / "tensorflow-plugins", self.plugins)
        shutil.copytree(SITE / "tensorflow_xpu", self.package, ignore=shutil.ignore_patterns("__pycache__", "libdnnl*"))
        for library in (SITE / "tensorflow_xpu" / "lib").glob("libdnnl*"):
            (self.lib / library.name).symlink_to(library)
        self.core, self.loader = self.lib / CORE, self.plugins / LOADER

    def environment(self, **variables):
        """The environment of a process that finds this copy and no other."""
        return {"PYTHONPATH": f"{self.folder}:{self.packages}", **variables}

    def run_code(self, code, **variables):
        """Runs Python code with this copy of the plugin installed."""
        return run_code(code, environment=self.environment(**variables), python=self.python)


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
def no_options(monkeypatch):
    """Nothing is chosen but what a test chooses, whatever the tests run with."""
    for name in [name for name in os.environ if name.startswith("TF_XPU_") and name != "TF_XPU_CONFIG"]:
        monkeypatch.delenv(name)
