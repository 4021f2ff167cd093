"""Starts the hooks in scripts that know nothing of this package.

The plugin's loader runs this file while TensorFlow is being imported, if there are devices. It imports the package of
hooks under its own name but not ``tensorflow_xpu``, whose import would replace TensorFlow's DLPack.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

PACKAGE = "tensorflow_xpu.hooks"


def _package(folder: str) -> Any:
    package = sys.modules.get(PACKAGE)
    if package is None:
        spec = importlib.util.spec_from_file_location(
            PACKAGE, f"{folder}/__init__.py", submodule_search_locations=[folder]
        )
        assert spec is not None and spec.loader is not None
        package = sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(package)
        except BaseException:
            del sys.modules[PACKAGE]
            raise
    return package


def start(folder: str, device_type: str, hooks: str, without: str) -> None:
    """Installs the hooks of the package in ``folder``. A broken installation costs a line, not the import."""
    try:
        _package(folder).install(device_type, hooks, without)
    except Exception as error:
        print(
            f"tensorflow_xpu: the hooks could not be started ({error!r}): let one thread at a time run eager ops, and "
            "use Keras's compile(jit_compile=False). Fix: pip install --force-reinstall --no-deps tensorflow_xpu",
            file=sys.stderr,
        )


# Run by the loader: a normal import sets __spec__.
if "__spec__" not in globals():
    given = globals()
    start(__file__.rpartition("/")[0], given["DEVICE_TYPE"], given["HOOKS"], given["HOOKS_WITHOUT"])
