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

# Each with what to do where it fails.
HOOKS = {
    "_eager_hook": "let one thread at a time run eager ops",
    "_read_hook": "reading a tensor waits for all of the device's work",
    "_keras_hook": "use compile(jit_compile=False)",
}


def install(folder: str, device_type: str) -> None:
    """Installs each hook of the package in ``folder``. One that fails costs a line, never ``import tensorflow``.

    ``device_type``: the devices' type to TensorFlow, ``XPU`` or ``GPU``.
    """
    for name, advice in HOOKS.items():
        path = f"{folder}/{name}.py"
        hook: dict[str, Any] = {"__name__": f"tensorflow_xpu.{name}", "__file__": path, "DEVICE_TYPE": device_type}
        try:
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec"), hook)
            hook["install"]()
        except Exception as error:
            print(f"tensorflow_xpu: {name} could not be installed ({error!r}); {advice}", file=sys.stderr)


# Run by the loader: a normal import sets __spec__.
if "__spec__" not in globals():
    install(__file__.rpartition("/")[0], globals()["DEVICE_TYPE"])
