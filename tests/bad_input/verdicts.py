"""The verdicts on spoiled calls on the XPU and on the CPU, each in processes of its own, which may die of it."""

from __future__ import annotations

import dataclasses
import faulthandler
import functools
import pathlib
import pickle
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator

import numpy as np

# A call that takes longer hangs.
SECONDS = 60
# A process may have so much more memory than when it starts to run calls, in bytes: 2^31 elements are refused.
MEMORY = 1536 << 20
# So many calls run in one process, which a crash ends.
TOGETHER = 500

# Exceptions whose class says nothing about the call: the XPU may have another one.
UNSPECIFIC = ("InternalError", "UnknownError", "AbortedError", "ResourceExhaustedError", "MemoryError")
# Words of the exceptions where a device has no kernel for the types.
NO_KERNEL = (
    "Could not find device for node",
    "Could not find valid device for node",
    "o OpKernel was registered",
    "Cannot assign a device for operation",
    "Could not satisfy device specification",
    "No registered '",
    "All kernels registered for op",
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """A device's answer to a call: its results, or the class of an exception and its message."""

    results: list[tuple[str, np.ndarray]] = dataclasses.field(default_factory=list)
    error: str = ""
    message: str = ""
    no_kernel: bool = False

    @property
    def shapes(self) -> list[tuple[str, tuple]]:
        return [(name, array.shape) for name, array in self.results]

    def __str__(self) -> str:
        return f"{self.error}: {self.message}" if self.error else f"{self.shapes}"


CRASH, DIFFERENT = "crash", "another answer the second time"
REFERENCE = {"TF_ENABLE_ONEDNN_OPTS": "0"}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The fate of a spoiled call; all but the following kinds are wrong.

    - "refused" by both,
    - "aborts" if the CPU does, and the XPU does not,
    - "accepted" by both, with the same results,
    - "no kernel" for the spoiled call.
    """

    kind: str
    details: str = ""

    @property
    def wrong(self) -> bool:
        return self.kind not in ("refused", "aborts", "accepted", "no kernel")


def traced(op: str, kwargs: dict, device: str) -> Callable[[], list]:
    """The call in a tf.function that knows the types of its tensors alone, so that shapes are the kernel's to refuse.

    Beside it is an op that has nothing to do with it, since two ops make a cluster.
    """
    import tensorflow as tf

    from tests.sweep.runner import Var, _is_tensor, _outputs_of

    unknown = tf.TensorShape(None)
    tensors = {name: v for name, v in kwargs.items() if _is_tensor(v)}
    signature = tf.nest.map_structure(lambda t: tf.TensorSpec(unknown, t.dtype), tensors)
    with tf.device(device):
        variables = {name: tf.Variable(v.value, shape=unknown) for name, v in kwargs.items() if isinstance(v, Var)}
        beside = tf.constant([1.0, 2.0])

    @tf.function(autograph=False, input_signature=[signature, tf.TensorSpec(unknown, tf.float32)])
    def function(tensors, beside):
        with tf.device(device):
            handles = {name: v.handle for name, v in variables.items()}
            out = getattr(tf.raw_ops, op)(**{**kwargs, **tensors, **handles})
            flat = _outputs_of(out)
            with tf.control_dependencies([out] if isinstance(out, tf.Operation) else flat):
                return [*flat, *(v.read_value() for v in variables.values())], tf.exp(beside)

    def call():
        for name, v in variables.items():
            v.assign(kwargs[name].value)
        return function(tensors, beside)[0]

    return call


def attempt(call: Callable[[], list]) -> Answer:
    """The answer to a call."""
    import tensorflow as tf

    try:
        results = [t for t in call() if t.dtype not in (tf.variant, tf.resource)]
        return Answer([(t.dtype.name, t.numpy()) for t in results])
    except Exception as error:  # of whatever class: that is what is compared
        message = " ".join(str(error).split())
        no_kernel = any(words in message for words in NO_KERNEL)
        return Answer([], type(error).__name__, message[-1500:], no_kernel)


def answer(spoiled, kwargs: dict, device: str) -> Answer:
    """Calls the op with these arguments; traced, twice: a function's later calls may go another way than the first."""
    from tests.sweep import sessions
    from tests.sweep.runner import _call, hard_placement, nothing_folded

    with hard_placement(), nothing_folded():
        if sessions.needs_session(kwargs):
            return attempt(lambda: sessions.run(spoiled.op, [kwargs], device, known=not spoiled.traced)[0][0])
        if not spoiled.traced:
            return attempt(lambda: _call(spoiled.op, kwargs, device))
        call = None

        def first():
            nonlocal call
            call = traced(spoiled.op, kwargs, device)
            return call()

        before = attempt(first)
        after = attempt(call) if call else before
        if (before.error, before.shapes) != (after.error, after.shapes):
            return Answer([], DIFFERENT, f"{before} -- {after}")
        return after


def on_xpu(spoiled, _) -> Answer:
    import tensorflow as tf

    with tf.device("/xpu:0"):
        kept = tf.constant([1.0, 2.0])
    found = answer(spoiled, spoiled.arguments(), "/xpu:0")
    if kept.numpy().tolist() != [1, 2]:
        raise SystemExit("the call has overwritten a tensor that is not its own")
    return found


def difference(spoiled, kwargs: dict, got: Answer) -> str:
    """How the XPU's results differ from what is expected, in those of them that the case compares."""
    import tensorflow as tf

    from tests.sweep.cases import CASES
    from tests.sweep.runner import Expected, hard_placement, nothing_folded

    case = CASES[spoiled.op][spoiled.case]
    if case.outputs is not None:
        got = dataclasses.replace(got, results=got.results[: case.outputs])
    if case.check or case.stateful or case.expect:  # made for the arguments of the case
        return ""
    with tf.device("/cpu:0"), hard_placement(), nothing_folded():
        results = [tf.constant(array, name) for name, array in got.results]
        try:
            Expected(spoiled.op, case, kwargs).check(results, "")
        except AssertionError as found:
            return " ".join(str(found).split())[:400]
        except Exception:
            pass
    return ""


def compared(spoiled, got: Answer) -> Verdict:
    """The CPU's answer beside the XPU's."""
    from tests.sweep.cases import CASES

    kwargs, compared_outputs = spoiled.arguments(), CASES[spoiled.op][spoiled.case].outputs
    wanted = answer(spoiled, kwargs, "/cpu:0")
    if got.error == DIFFERENT:
        return Verdict(DIFFERENT, f"{got.message}, expected {wanted}")
    if wanted.no_kernel or got.no_kernel:
        return Verdict("no kernel", f"{wanted} -- {got}")
    if wanted.error and got.error:
        same = wanted.error == got.error or wanted.error in UNSPECIFIC
        return Verdict("refused" if same else "another exception", f"{wanted} -- {got}")
    if wanted.error or got.error:
        return Verdict(
            f"accepted by the {'XPU' if wanted.error else 'CPU'} alone", str(wanted if wanted.error else got)
        )
    if wanted.shapes[:compared_outputs] != got.shapes[:compared_outputs]:
        return Verdict("other shapes", f"{got}, expected {wanted}")
    found = difference(spoiled, kwargs, got)
    return Verdict("other results", found) if found else Verdict("accepted")


def serve(calls: str, out: str) -> None:
    """Calls a function for each (number, spoiled call, argument), all of a file, and writes what it gives to another,
    after the number alone.
    """
    import tensorflow as tf

    tf.config.list_logical_devices()
    in_use = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY,) * 2)
    with open(calls, "rb") as read, open(out, "wb", buffering=0) as write:
        function, arguments = pickle.load(read)
        for number, spoiled, argument in arguments:
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            write.write(pickle.dumps(number))
            write.write(pickle.dumps((number, function(spoiled, argument))))
    faulthandler.cancel_dump_traceback_later()


def read_all(path: pathlib.Path) -> Iterator:
    """The objects in a file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                return


@functools.cache
def fork_server():
    """Whose children take TensorFlow's own kernels on the CPU: those of oneDNN check less."""
    from tests.support.forkserver import ForkServer
    from tests.support.installed import SITE
    from tests.support.processes import environment_of, read_by_plugin

    same = {name: value for name, value in environment_of(REFERENCE).items() if not read_by_plugin(name)}
    return ForkServer(same, SITE)


def in_processes(function: Callable, calls: list, environment: dict[str, str], ended, progress) -> list:
    """The results of a function of a module for each (spoiled call, argument). Where a process dies of one,
    `ended(how)` stands for it, and another process goes on.
    """
    from tests.support.processes import environment_of

    server, environment = fork_server(), environment_of(environment)
    found: dict[int, object] = {}
    while len(found) < len(calls):
        left = [(i, *call) for i, call in enumerate(calls) if i not in found][:TOGETHER]
        with tempfile.TemporaryDirectory() as folder:
            file, out = pathlib.Path(folder) / "calls", pathlib.Path(folder) / "out"
            file.write_bytes(pickle.dumps((function, left)))
            code = f"from tests.bad_input.verdicts import serve\nserve({str(file)!r}, {str(out)!r})"
            process = server.run(code, {**environment, **REFERENCE}, 1800, None)
            begun = None
            for said in read_all(out):
                begun = said if isinstance(said, int) else None
                if begun is None:
                    found[said[0]] = said[1]
        progress(f"{function.__name__}: {len(found)} of {len(calls)}")
        if process.returncode != 0:
            code = process.returncode
            how = f"{signal.Signals(-code).name if code < 0 else f'exit code {code}'}: {process.stderr[-1500:]}"
            if begun is None and not any(i in found for i, *_ in left):
                raise RuntimeError(f"{function.__name__}: a process ended before its first call: {how}")
            if begun is not None:
                found[begun] = ended(how)
            elif function is not compared:  # it has damaged what others need
                last = max(i for i, *_ in left if i in found)
                found[last] = ended(f"after this call or an earlier one: {how}")
    return [found[i] for i in range(len(calls))]


def answers_of_xpu(spoiled: list, environment: dict[str, str], progress=lambda words: None) -> list[Answer]:
    """To each call, from XPUs with these environment variables; of those that end their process, how."""
    crashed = lambda how: Answer([], CRASH, how)  # noqa: E731
    environment = {"TF_XPU_MEMORY_LIMIT": "1GiB", **environment}
    return in_processes(on_xpu, [(s, None) for s in spoiled], environment, crashed, progress)


def endings(spoiled: list) -> dict:
    """The calls that end the process which makes them, and how it ends."""
    answers = answers_of_xpu(spoiled, {})
    return {call: a.message for call, a in zip(spoiled, answers, strict=True) if a.error == CRASH}


def verdicts(spoiled: list, environment: dict[str, str], progress=lambda words: None) -> list[Verdict]:
    """The verdict on each call, on XPUs with these environment variables."""
    answers = answers_of_xpu(spoiled, environment, progress)
    aborts = lambda how: Verdict("aborts", how[:200])  # noqa: E731
    whole = [(s, a) for s, a in zip(spoiled, answers) if a.error != CRASH]
    found = iter(in_processes(compared, whole, {"TF_XPU_DISABLE": "1"}, aborts, progress))
    return [Verdict(CRASH, a.message) if a.error == CRASH else beside(next(found), a) for a in answers]


def beside(verdict: Verdict, got: Answer) -> Verdict:
    """Where the CPU's process ends, any error of the XPU will do, but no results."""
    if verdict.kind != "aborts":
        return verdict
    return Verdict(verdict.kind if got.error else "accepted where the CPU aborts", f"{verdict.details} -- {got}")
