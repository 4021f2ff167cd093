"""Private names of TensorFlow that functions of this package use without replacing anything: a ``Feature`` each.

A feature resolves all its names when it is first used. If one is absent or has other parameters, the function of the
package says so and does nothing; TensorFlow itself is as it was. The page docs/internals.md lists the names.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace

from tensorflow_xpu.hooks.patch import Need, UnknownError


@dataclasses.dataclass
class Feature:
    """The private names behind some functions of the package.

    Args:
        name: of the feature, for docs/internals.md.
        purpose: which functions need it for what, a sentence.
        without: the effect of its absence, a sentence.
        needs: the private names, by the names that ``find`` has for them.
        attributes: private attributes of instances, by class.
        public: the public interface that would make the names unnecessary.
    """

    name: str
    purpose: str
    without: str
    needs: Mapping[str, str]
    attributes: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    public: str = ""

    state: str = dataclasses.field(default="not used yet", init=False)
    _found: SimpleNamespace | None = dataclasses.field(default=None, init=False)

    def all_needs(self) -> list[Need]:
        """Every private name of the feature."""
        return [Need.parse(text) for text in self.needs.values()]

    def find(self) -> SimpleNamespace:
        """The objects with the names, as they were at the first call.

        Raises:
            UnknownError: if one is absent or of another kind, or has failed before; no second look is taken.
        """
        if self.state.startswith("off: "):
            raise UnknownError(self.state.removeprefix("off: "))
        if self._found is None:
            try:
                self._found = SimpleNamespace(**{name: Need.parse(text).find() for name, text in self.needs.items()})
            except UnknownError as error:
                self.state = f"off: {error}"
                raise
            self.state = "on"
        return self._found

    @contextlib.contextmanager
    def used(self) -> Iterator[SimpleNamespace]:
        """Around calls of the private names and nothing else.

        A private function of an unknown version may raise anything, so every exception turns the feature off.

        Raises:
            UnknownError: with the reason.
        """
        found = self.find()
        try:
            yield found
        except Exception as error:
            self.state = f"off: it failed with {error!r}"
            raise UnknownError(f"it failed with {error!r}") from error


_CONTEXT = "tensorflow.python.eager.context:Context"

#: Whether TensorFlow has made its devices, and what can be done before and after that.
DEVICES = Feature(
    name="devices",
    purpose="`configure()` and `load_plugin()` learn if they are in time, and `synchronize()` waits for eager ops.",
    without="Options and plugins have to be chosen before `import tensorflow`.",
    needs={
        "context": "tensorflow.python.eager.context:context()",
        "executor": f"{_CONTEXT}.executor(self)",
        "reinitialize": f"{_CONTEXT}.reinitialize_physical_devices(self)",
    },
    attributes={_CONTEXT: ("_context_handle",)},
    public="a function of `tf.config` that says if the devices have been made, and one that counts them again",
)

#: The kernels and ops that are registered.
REGISTRY = Feature(
    name="registry",
    purpose="`ops`, `explain()` and `trace_placement()` read the registered kernels and the definitions of ops.",
    without="The package cannot say which ops have a kernel.",
    needs={
        "kernels": "tensorflow.python.framework.kernels:get_all_registered_kernels()",
        "op_def": "tensorflow.python.framework.op_def_registry:get(name)",
    },
    public="functions of `tf.raw_ops` that give the definition and the kernels of an op",
)

#: The ops that run, and the graphs of functions as they are executed.
PLACEMENT = Feature(
    name="placement",
    purpose="`trace_placement()` sees eager ops and the graphs of functions.",
    without="It cannot be traced where ops run; tf.debugging.set_log_device_placement(True) prints it.",
    needs={
        "context": "tensorflow.python.eager.context:context()",
        "ensure_initialized": f"{_CONTEXT}.ensure_initialized(self)",
        "clear_kernel_cache": f"{_CONTEXT}.clear_kernel_cache(self)",
        "enable_graph_collection": f"{_CONTEXT}.enable_graph_collection(self)",
        "disable_graph_collection": f"{_CONTEXT}.disable_graph_collection(self)",
        "export_run_metadata": f"{_CONTEXT}.export_run_metadata(self)",
        "device_name": f"{_CONTEXT}.device_name(self)",
        "remove": f"{_CONTEXT}.remove_op_callback(self, callback)",
        "add_op_callback": "tensorflow.python.framework.op_callbacks:add_op_callback(callback_fn)",
        "remove_op_callback": "tensorflow.python.framework.op_callbacks:remove_op_callback(op_callback)",
    },
    public="a callback for each op that runs, with its device, and one for each graph that is executed",
)

#: The one place in which a strategy chooses a worker's devices.
WORKERS = Feature(
    name="workers",
    purpose="`multi_worker_mirrored_strategy()` chooses XPUs as the devices of a worker.",
    without="tf.distribute.MultiWorkerMirroredStrategy has one replica on the CPU of each worker.",
    needs={
        "extended": "tensorflow.python.distribute.collective_all_reduce_strategy:CollectiveAllReduceExtended[class]",
        "constructor": "tensorflow.python.distribute.collective_all_reduce_strategy:CollectiveAllReduceExtended"
        ".__init__(self, container_strategy, cluster_resolver, communication_options, devices=)",
        "choice": "tensorflow.python.distribute.collective_all_reduce_strategy:CollectiveAllReduceExtended"
        "._initialize_local_devices(self, cluster_resolver, worker_device)",
    },
    public="an argument of `tf.distribute.MultiWorkerMirroredStrategy` with the devices of a worker",
)

#: The functions that load plugins.
LIBRARIES = Feature(
    name="libraries",
    purpose="`load_plugin()` and `load_plugin_with_highest_priority()` have TensorFlow load a library.",
    without="Put the library into site-packages/tensorflow-plugins instead.",
    needs={
        "load_library": "tensorflow.python.framework.load_library:load_library(library_location)",
        "load_plugin": "tensorflow.python.framework.load_library:load_pluggable_device_library(library_location)",
    },
    public="`tf.load_pluggable_device_library`, and priorities of plugins as RFC 262 has them",
)

#: The format of profiles.
PROFILES = Feature(
    name="profiles",
    purpose="`profile()` reads the file that TensorFlow's profiler has written.",
    without="TensorBoard shows the profile in the same folder.",
    needs={"space": "tensorflow.tsl.profiler.protobuf.xplane_pb2:XSpace[class]"},
    public="a public module with the format of profiles",
)

FEATURES = (DEVICES, REGISTRY, PLACEMENT, WORKERS, LIBRARIES, PROFILES)
