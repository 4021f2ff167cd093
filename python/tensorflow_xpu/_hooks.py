"""Runs the hooks: what makes TensorFlow and Keras ready for an XPU in scripts that know nothing of this package.

The plugin's loader runs this file while TensorFlow is being imported, if there are devices. So it imports nothing but
what the interpreter has loaded anyway, never TensorFlow (half imported at that moment), this package or Keras. Neither
do the hooks, which it runs as files for that reason: each in a namespace of its own, where it defines ``install()``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from typing import Any

# Where a context keeps what it knows of functions that are called directly: by name, then by all else that TensorFlow
# optimises them for.
CALLS = "_xpu_direct_calls"

# Each with what to do where it fails.
HOOKS = {
    "_eager_hook": "let one thread at a time run eager ops",
    "_read_hook": "reading a tensor waits for all of the device's work",
    "_call_hook": "functions are called as TensorFlow does, which takes longer",
    "_function_hook": "functions are found as TensorFlow does, which takes longer",
    "_data_hook": "arrays that data sets are made of go through the device's memory",
    "_keras_hook": "use compile(jit_compile=False)",
    "_batches_hook": "Keras makes data sets of arrays, which takes longer",
}


def _native() -> Any:
    """The native module for this TensorFlow, connected with the core; None if there is none.

    The package is not imported for it: that would replace TensorFlow's DLPack for who has not asked.
    """
    import importlib.machinery
    import importlib.util

    folder = __file__.rpartition("/")[0]
    minor = "_".join(sys.modules["tensorflow"].__version__.split(".")[:2])
    name = f"tensorflow_xpu._interop_{minor}"
    module = sys.modules.get(name)
    if module is None:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            try:
                spec = importlib.util.spec_from_file_location(name, f"{folder}/_interop_{minor}{suffix}")
                assert spec is not None
                module = importlib.util.module_from_spec(spec)
            except ImportError:
                continue
            sys.modules[name] = module
            break
    core = f"{folder}/lib/libtensorflow_xpu_core_{minor}.so"
    return module if module is not None and module.connect_core(core) else None


def _run(folder: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Runs a file of the package in a namespace of its own, which has these names to begin with, and returns it."""
    path = f"{folder}/{name}.py"
    namespace = {"__name__": f"tensorflow_xpu.{name}", "__file__": path, **given}
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), namespace)
    return namespace


def install(folder: str, device_type: str) -> None:
    """Installs each hook of the package in ``folder``. One that fails costs a line, never ``import tensorflow``.

    ``device_type``: the devices' type to TensorFlow, ``XPU`` or ``GPU``.
    """
    shared = {"DEVICE_TYPE": device_type, "CALLS": CALLS, "native": _native}
    for name, advice in HOOKS.items():
        try:
            if "AfterImport" not in shared:
                shared["AfterImport"] = _run(folder, "_after_import", {})["AfterImport"]
            _run(folder, name, shared)["install"]()
        except Exception as error:
            print(f"tensorflow_xpu: {name} could not be installed ({error!r}); {advice}", file=sys.stderr)


# Run by the loader: a normal import sets __spec__.
if "__spec__" not in globals():
    install(__file__.rpartition("/")[0], globals()["DEVICE_TYPE"])
