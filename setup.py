"""Builds the wheel: Bazel compiles (tools/bazel.sh), this file adds what it made to the Python package.

The wheel holds tensorflow-plugins/ with the loader alone, where TensorFlow looks for plugins at import, and
tensorflow_xpu/ with the package, the core and the shared libraries that the core needs. Metadata: pyproject.toml.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
TREE = ROOT / "bazel-bin" / "wheel_tree"


class BuildWithBazel(build_py):
    """Copies the Python files, then what Bazel builds."""

    def run(self):
        """Builds into ``self.build_lib``, from scratch: what an earlier build left there must not get into a wheel."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        command = [str(ROOT / "tools" / "bazel.sh"), "build", "//:wheel_tree"]
        command += [
            f"--repo_env=PYTHON_BIN_PATH={sys.executable}",
            f"--repo_env=PYTHONPATH={os.environ.get('PYTHONPATH', '')}",
        ]
        subprocess.run(command, cwd=ROOT, check=True)
        for source in sorted(path for path in TREE.rglob("*") if path.is_file()):
            target = pathlib.Path(self.build_lib) / source.relative_to(TREE)
            if target.name.startswith("_"):  # a Python module, built for this Python
                target = target.with_name(target.stem + sysconfig.get_config_var("EXT_SUFFIX"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o755)


class PlatformDistribution(Distribution):
    """A distribution with compiled code: its wheel is for one platform and one version of Python."""

    def has_ext_modules(self):
        """True: the compiled files come from Bazel, so setuptools does not know of them."""
        return True


setup(
    packages=["tensorflow_xpu"],
    package_dir={"": "python"},
    cmdclass={"build_py": BuildWithBazel},
    distclass=PlatformDistribution,
)
