"""Other plugins: loads a PluggableDevice library by its path, and settles who serves a type that several claim.

TensorFlow 2.21 has one priority for all plugins. It ends the process when two claim the same device type or platform
name, and also when a library's registration fails. So a library is first loaded by a program of its own
(``bin/conformance``), which says what it registers. A library that would end the process is not loaded here.

Source of the functions: RFC 262 (PluggableDevice), its scenarios and ``load_plugin_with_highest_priority``.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import importlib.machinery
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tensorflow_xpu import _core, _internals
from tensorflow_xpu._devices import PhysicalDevice, list_physical_devices
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._subdevice import device_type as xpu_type
from tensorflow_xpu.hooks.features import LIBRARIES
from tensorflow_xpu.hooks.patch import UnknownError

_EXAMINER = _core.PACKAGE / "bin" / "conformance"
# The checks whose failure makes TensorFlow end the process.
_CHECKS = ["library.loads", "registration.succeeds", "registration.names", "registration.platform_callbacks"]
_CHECKS += ["registration.executor_callbacks"]
_SECONDS = 60  # for a library to register in the examining program
_TAKEN_ALWAYS = {"CPU": "TensorFlow's own CPU"}


@dataclasses.dataclass(frozen=True)
class Plugin:
    """The names that a library registers."""

    path: pathlib.Path
    platform: str  #: its platform's name, which is its subdevice type
    device_type: str
    device_count: int


# Those that functions of this module have loaded, and who had to step back.
_loaded: list[Plugin] = []


def _notice(text: str) -> None:
    print(f"tensorflow_xpu: {text}", file=sys.stderr)


def _tensorflow_folder() -> pathlib.Path:
    found = importlib.machinery.PathFinder.find_spec("tensorflow")  # does not import it
    if found is None or not found.origin:
        raise XPUError(f"TensorFlow is not installed: {_core.how_to_install_tensorflow()}")
    return pathlib.Path(found.origin).parent


def _library(path: str | os.PathLike[str]) -> pathlib.Path:
    """The file of a library that was named."""
    try:
        library = pathlib.Path(path)
    except TypeError as error:
        raise XPUError(f"{path!r} is no path: expected that of a PluggableDevice library") from error
    if library.is_dir():
        several = ", ".join(sorted(str(file) for file in library.glob("*.so"))) or "none"
        raise XPUError(f"{library} is a folder: expected one library; those in it: {several}")
    if not library.is_file():
        raise XPUError(f"there is no file {library}: expected a PluggableDevice library, whose name ends in .so")
    return library.resolve()


def _plugin_at(path: str | os.PathLike[str]) -> Plugin:
    """The names that the library registers when a program loads it beside TensorFlow's libraries.

    Raises:
        XPUError: if it is no plugin, needs what this TensorFlow has not, or its registration fails or ends the process.
    """
    library = _library(path)
    command = [str(_EXAMINER), "--json", "--tensorflow", str(_tensorflow_folder()), "--timeout", str(_SECONDS)]
    for check in _CHECKS:
        command += ["--only", check]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        run = subprocess.run(
            [*command, str(library)], capture_output=True, text=True, errors="replace", env=environment, check=False
        )
        report = json.loads(run.stdout)
    except (OSError, json.JSONDecodeError) as error:
        raise XPUError(
            f"{library} cannot be examined ({error}): pip install --force-reinstall --no-deps tensorflow_xpu"
        ) from error
    failed = [check["reason"] for check in report["checks"] if check["outcome"] == "fail"]
    described = re.fullmatch(r"platform ([A-Z_]+) of type ([A-Z_]+), (-?\d+) devices?", report["description"])
    if failed or described is None:
        reason = failed[0] if failed else report["description"]
        raise XPUError(
            f"{library} is no PluggableDevice library that this TensorFlow could load: {reason}. Expected one with "
            f"SE_InitPlugin, built for the TensorFlow in {_tensorflow_folder()}; "
            f"`python -m tensorflow_xpu conformance {library}` says more"
        )
    return Plugin(library, described[1], described[2], int(described[3]))


def _owner_of(device_type: str) -> str | None:
    """Who serves the type in this process, which has TensorFlow; None: nobody, so that a plugin may register it."""
    if device_type in _TAKEN_ALWAYS:
        return _TAKEN_ALWAYS[device_type]
    for plugin in _loaded:
        if plugin.device_type == device_type:
            return str(plugin.path)
    if not _loader().XpuLoader_TypeIsTaken(device_type.encode()):
        return None
    return str(_core.LOADER) if _core.core_description() and device_type == xpu_type() else "another plugin"


def _loader() -> ctypes.CDLL:
    return ctypes.CDLL(str(_core.LOADER))


def _register(plugin: Plugin) -> None:
    """Has TensorFlow load a library that registers what nobody else has."""
    try:
        load = LIBRARIES.find().load_plugin
    except UnknownError as error:
        raise XPUError(f"{plugin.path} cannot be loaded with this TensorFlow: {error}. {LIBRARIES.without}") from error
    try:
        getattr(load, "__wrapped__", load)(str(plugin.path))
    except (RuntimeError, _op_error()) as error:
        text = f"TensorFlow does not load {plugin.path}: {error}. Expected one that was built for this TensorFlow"
        raise XPUError(text) from error
    _loaded.append(plugin)


def _op_error() -> type[Exception]:
    """``tf.errors.OpError``, also while TensorFlow is being imported."""
    found = getattr(sys.modules.get("tensorflow.python.framework.errors_impl"), "OpError", RuntimeError)
    return found if isinstance(found, type) and issubclass(found, Exception) else RuntimeError


def _require_no_devices(call: str) -> None:
    if "tensorflow" not in sys.modules:
        return
    if _internals.devices_are_made(call):
        raise XPUError(
            f"{call} came after TensorFlow had created its devices, and a plugin's would not be among them: call it "
            "before the first op, best before `import tensorflow`"
        )


def _already(plugin: Plugin) -> bool:
    return any(other.path == plugin.path for other in _loaded) or (
        plugin.path == _core.LOADER.resolve() and (_core.loader_report() or {}).get("active", False)
    )


def platform_of(device_type: str) -> str | None:
    """The platform of the plugin that was loaded here and serves that type; None if none was."""
    return next((plugin.platform for plugin in _loaded if plugin.device_type == device_type), None)


def load_plugin(path: str | os.PathLike[str]) -> list[PhysicalDevice]:
    """Loads a PluggableDevice library and gives TensorFlow its devices.

    Any plugin will do that is built for the installed TensorFlow. Imports TensorFlow if that has not been done, and
    with it the plugins in ``site-packages/tensorflow-plugins``. Where one of them, or another that was loaded before,
    serves the device type already, that one stays, this one is skipped, and a line on stderr says so;
    ``load_plugin_with_highest_priority`` decides otherwise. A library that is loaded already is not loaded again.

    Args:
        path: of the library.

    Returns:
        The devices that it gave TensorFlow; empty if it was skipped or has none.

    Raises:
        XPUError: if there is no such file, it is not a plugin for this TensorFlow, or TensorFlow has created its
            devices. Nothing is loaded then.

    Example::

        tensorflow_xpu.load_plugin("/opt/vendor/libnpu.so")
        with tf.device("/npu:0"):
            ...
    """
    _require_no_devices(f"load_plugin({str(path)!r})")
    plugin = _plugin_at(path)
    import tensorflow  # noqa: F401

    if not _already(plugin):
        owner = _owner_of(plugin.device_type)
        if owner is not None:
            _notice(
                f"{plugin.path} is skipped, since the device type {plugin.device_type} is that of {owner}. "
                "Fix: load_plugin_with_highest_priority() before `import tensorflow` chooses this one instead"
            )
            return []
        _require_free_platform(plugin)
        _register(plugin)
    return _devices_of(plugin)


def _require_free_platform(plugin: Plugin) -> None:
    """Two plugins of a platform's name end the process."""
    names = {other.platform: str(other.path) for other in _loaded}
    if plugin.platform in names or _loader().XpuLoader_PlatformIsTaken(plugin.platform.encode()):
        other = names.get(plugin.platform, "another plugin")
        raise XPUError(
            f"{plugin.path} registers the platform {plugin.platform}, which {other} has registered: use one of the two"
        )


def _devices_of(plugin: Plugin) -> list[PhysicalDevice]:
    return [d for d in list_physical_devices(plugin.device_type, enabled=True) if d.subdevice_type == plugin.platform]


def load_plugin_with_highest_priority(path: str | os.PathLike[str]) -> list[PhysicalDevice]:
    """Loads a PluggableDevice library before all others that claim its device type (RFC 262, scenario 4).

    Call it before ``import tensorflow``, which it does. It looks at the plugins in ``site-packages/tensorflow-plugins``
    and of ``TF_PLUGGABLE_DEVICE_LIBRARY_PATH``. Those that claim the same device type or platform are skipped, each
    with a line on stderr; all others are loaded as ever. Later it works if nobody serves the type yet.

    Args:
        path: of the library, which may also be one in these folders.

    Returns:
        The devices that it gave TensorFlow.

    Raises:
        XPUError: if there is no such file, or it is not a plugin for this TensorFlow. Also if it is too late: the type
        is another's, or TensorFlow has created its devices. Nothing is loaded then.

    Example::

        import tensorflow_xpu
        tensorflow_xpu.load_plugin_with_highest_priority("/opt/vendor/libgpu.so")
        import tensorflow as tf
    """
    call = f"load_plugin_with_highest_priority({str(path)!r})"
    _require_no_devices(call)
    plugin = _plugin_at(path)
    if plugin.device_type in _TAKEN_ALWAYS:
        raise XPUError(f"{plugin.path} registers the device type {plugin.device_type}, which no plugin can take over")
    if "tensorflow" not in sys.modules:
        with _first(plugin):
            import tensorflow  # noqa: F401
    if not _already(plugin):
        owner = _owner_of(plugin.device_type)
        if owner is not None:
            raise XPUError(
                f"{call} came after TensorFlow had given the device type {plugin.device_type} to {owner}, which "
                "cannot be undone: call it before `import tensorflow`"
            )
        _require_free_platform(plugin)
        _register(plugin)
    return _devices_of(plugin)


@contextlib.contextmanager
def _first(plugin: Plugin) -> Iterator[None]:
    """While TensorFlow is imported in this block it loads ``plugin`` first, and no other that would clash with it."""
    from tensorflow_xpu.hooks.after_import import AfterImport

    restore: list[Any] = []

    def patch(load_library: Any) -> None:
        try:
            LIBRARIES.find()
        except UnknownError:
            return  # _register says so
        clashes = functools.cache(lambda library: _clashes(library, plugin))

        def replace(name: str) -> None:
            plain = getattr(load_library, name)

            def load(location: str) -> None:
                if name == "load_pluggable_device_library" and not _loaded:
                    _register(plugin)
                for library in _libraries(pathlib.Path(location)):
                    if library.resolve() != plugin.path and not clashes(library):
                        plain(str(library))

            load.__wrapped__ = plain  # type: ignore[attr-defined]
            setattr(load_library, name, load)
            restore.append((load_library, name, plain))

        replace("load_library")  # of what a folder of plugins has, TensorFlow calls it, too
        replace("load_pluggable_device_library")

    name = "tensorflow.python.framework.load_library"
    hook = AfterImport(name, patch)
    if name in sys.modules:
        patch(sys.modules[name])
    else:
        sys.meta_path.insert(0, hook)
    try:
        yield
    finally:
        if hook in sys.meta_path:
            sys.meta_path.remove(hook)
        for module, name, plain in restore:
            setattr(module, name, plain)


def _libraries(location: pathlib.Path) -> list[pathlib.Path]:
    """As TensorFlow finds them."""
    if not location.is_dir():
        return [location]
    return [file for file in sorted(location.iterdir()) if file.name.endswith((".so", ".dylib", ".dll"))]


def _clashes(library: pathlib.Path, chosen: Plugin) -> bool:
    """True if the library claims a name of the chosen one; then a line says that it is skipped."""
    if library.resolve() == _core.LOADER.resolve():
        return False  # it sees by itself that its type is taken, and says so
    try:
        other = _plugin_at(library)
    except XPUError:
        return False  # TensorFlow's own words for what is wrong with it are as good
    if other.device_type == chosen.device_type:
        what = f"the device type {other.device_type} is"
    elif other.platform == chosen.platform:
        what = f"the platform {other.platform} is"
    else:
        return False
    _notice(f"{library} is skipped, since {what} that of {chosen.path}, which was chosen")
    return True
