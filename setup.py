"""Builds the wheel: Bazel compiles (tools/bazel.sh), this file adds what it made to the Python package.

The wheel holds tensorflow-plugins/ with the loader alone, where TensorFlow looks for plugins at import, and
tensorflow_xpu/ with the package, a core for each version of TensorFlow, and the shared libraries that cores need: of
the TensorFlow that is installed or, with XPU_ALL_VERSIONS=1 (`make wheel-all`), of each one in
third_party/tensorflows.bzl. The same sources give the same bytes. Metadata: pyproject.toml.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))
import abi  # noqa: E402
import bazel_build  # noqa: E402

CORE = re.compile(r"libtensorflow_xpu_core_(\d+_\d+)\.so")
# The date of what is in the wheel.
os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")


# What the build takes from the machine, and Debian's package that has it: a program, or a file.
NEEDED = {
    "g++": ("g++", "g++"),
    "strip and objdump": ("objdump", "binutils"),
    "Eigen": ("{usr}/include/eigen3/Eigen/Core", "libeigen3-dev"),
    "OpenCL's headers": ("/usr/include/CL/cl.h", "opencl-c-headers"),
}


def require_what_is_needed() -> None:
    """Ends with one line where something is missing."""

    def is_there(what):
        if not what.startswith(("/", "{")):
            return shutil.which(what)
        return any(pathlib.Path(what.format(usr=usr)).exists() for usr in ("/usr", "/usr/local"))

    missing = {name: package for name, (what, package) in NEEDED.items() if not is_there(what)}
    if subprocess.run([ROOT / "tools" / "bazel.sh", "--which"], capture_output=True, check=False).returncode:
        missing[f"Bazel {(ROOT / '.bazelversion').read_text().strip()}"] = "bazel-bootstrap"
    if missing:
        packages = " ".join(missing.values())
        sys.exit(
            f"tensorflow_xpu: building it needs {', '.join(missing)}, which this machine lacks. "
            f"Fix: apt-get install {packages} (or what your system has in their place), or install a wheel"
        )


class BuildWithBazel(build_py):
    """Copies the Python files, then what Bazel builds."""

    def run(self):
        """Builds into ``self.build_lib``, from scratch: what an earlier build left there must not get into a wheel."""
        require_what_is_needed()
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        tree = ROOT / "bazel-bin" / bazel_build.wheel_tree()
        shutil.rmtree(tree, ignore_errors=True)  # an earlier one may have been for another TensorFlow
        if status := bazel_build.run(bazel_build.wheel_command()):
            sys.exit(status)
        for source in sorted(path for path in tree.rglob("*") if path.is_file()):
            target = pathlib.Path(self.build_lib) / source.relative_to(tree)
            if target.name.startswith("_"):  # a Python module, built for this Python
                target = target.with_name(target.stem + sysconfig.get_config_var("EXT_SUFFIX"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o755)
            if match := CORE.fullmatch(target.name):
                target.with_suffix(".abi").write_text(abi_of(match[1]))


def abi_of(minor: str) -> str:
    """What tools/abi.py says of the TensorFlow that Bazel has compiled the core for this minor version with."""
    repositories = (ROOT / "bazel-bin").resolve().parents[2] / "external"
    for name in ("tensorflow", f"tensorflow_{minor}"):
        said = dict(re.findall(r'(\w+) = "(.*)"', (repositories / name / "version.bzl").read_text()))
        if said["MINOR"] == minor:
            return abi.listing(repositories / name / "include", said["VERSION"])
    raise AssertionError(minor)


class PlatformDistribution(Distribution):
    """A distribution with compiled code: its wheel is for one platform and one version of Python."""

    def has_ext_modules(self):
        """True: the compiled files come from Bazel, so setuptools does not know of them."""
        return True


class ManylinuxWheel(bdist_wheel):
    """A wheel whose platform tag names the glibc that its libraries need (PEP 600)."""

    def get_tag(self):
        """The tag for Python and for its ABI as setuptools has them, and the platform's."""
        needed = {2}
        files = pathlib.Path(self.bdist_dir)
        for library in [*files.rglob("*.so*"), *files.rglob("bin/*")]:
            text = subprocess.run(["objdump", "-T", str(library)], capture_output=True, text=True, check=True).stdout
            needed |= {int(minor) for minor in re.findall(r"\(?GLIBC_2\.(\d+)", text)}
        python, abi_tag, platform = super().get_tag()
        return python, abi_tag, platform.replace("linux_", f"manylinux_2_{max(needed)}_", 1)


setup(
    packages=["tensorflow_xpu", "tensorflow_xpu._bench", "tensorflow_xpu.hooks", "tensorflow_xpu.__pyinstaller"],
    package_dir={"": "python"},
    cmdclass={"build_py": BuildWithBazel, "bdist_wheel": ManylinuxWheel},
    distclass=PlatformDistribution,
)
