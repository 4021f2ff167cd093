"""The hooks: all that the package changes inside TensorFlow and Keras so that programs run well on an XPU.

``start`` installs them while TensorFlow is being imported, for programs that know nothing of this package. It imports
this package of modules without ``tensorflow_xpu``, so nothing here may import that; ``from tensorflow_xpu.hooks import
batches`` would, ``from tensorflow_xpu.hooks.batches import HOOK`` does not.
docs/internals.md lists the hooks, and every private name that they need. Those that the core has in C++ are there, too,
and in ``internals``.
"""

from __future__ import annotations

import sys

from tensorflow_xpu.hooks.arrays import HOOK as ARRAYS
from tensorflow_xpu.hooks.batches import HOOK as BATCHES
from tensorflow_xpu.hooks.calls import HOOK as CALLS
from tensorflow_xpu.hooks.cudnn import HOOK as CUDNN
from tensorflow_xpu.hooks.forks import HOOK as FORKS
from tensorflow_xpu.hooks.functions import HOOK as FUNCTIONS
from tensorflow_xpu.hooks.host_data import HOOK as HOST_DATA
from tensorflow_xpu.hooks.internals import MAY_BE_LEFT_OUT
from tensorflow_xpu.hooks.iterators import HOOK as ITERATORS
from tensorflow_xpu.hooks.logs import HOOK as LOGS
from tensorflow_xpu.hooks.ops import HOOK as OPS
from tensorflow_xpu.hooks.patch import SPEED, Patch, one_line_each
from tensorflow_xpu.hooks.reading import HOOK as READING
from tensorflow_xpu.hooks.runtime import Devices
from tensorflow_xpu.hooks.tracebacks import HOOK as TRACEBACKS
from tensorflow_xpu.hooks.xla import HOOK as XLA

#: In the order in which they are installed.
HOOKS: tuple[Patch, ...] = (
    OPS,
    TRACEBACKS,
    FORKS,
    HOST_DATA,
    XLA,
    LOGS,
    ARRAYS,
    CUDNN,
    READING,
    CALLS,
    FUNCTIONS,
    ITERATORS,
    BATCHES,
)
NAMES = tuple(hook.name for hook in HOOKS)


def install(device_type: str = "XPU", hooks: str = "", without: str = "") -> None:
    """Installs the hooks. None raises: one that cannot be installed costs a line.

    Args:
        device_type: what the devices are to TensorFlow, ``XPU`` or ``GPU``.
        hooks: the text of the option TF_XPU_HOOKS.
        without: the text of the option TF_XPU_HOOKS_WITHOUT.
    """
    Devices.type = device_type
    if hooks not in ("", "0", "1"):
        _ignored("TF_XPU_HOOKS", hooks, "1 or 0", "1")
    left_out = set(filter(None, without.split(",")))
    known = (*NAMES, *MAY_BE_LEFT_OUT)  # the core looks for its own
    if not left_out <= set(known):
        _ignored("TF_XPU_HOOKS_WITHOUT", without, f"of these, with commas between: {', '.join(known)}", "all")
        left_out = set()
    with one_line_each():
        for hook in HOOKS:
            if hook.name in left_out:
                hook.turn_off("by option (TF_XPU_HOOKS_WITHOUT)")
            elif hooks == "0" and hook.kind == SPEED:
                hook.turn_off("by option (TF_XPU_HOOKS=0)")
            else:
                hook.install()


def uninstall() -> bool:
    """Restores the original objects. False if other libraries have replaced some since, which then stay."""
    return all([hook.uninstall() for hook in reversed(HOOKS)])


def report() -> list[dict[str, str]]:
    """A description of each hook in this process: name, kind, state, purpose and what happens without it."""
    return [{name: getattr(hook, name) for name in ("name", "kind", "state", "purpose", "without")} for hook in HOOKS]


def _ignored(variable: str, value: str, expected: str, used: str) -> None:
    print(f"tensorflow_xpu: {variable}={value} is ignored: expected {expected}; using {used}", file=sys.stderr)
