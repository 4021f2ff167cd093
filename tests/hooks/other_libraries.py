"""Another library replaces the functions that the hooks replace, or modules change: the program has the same numbers.

`python -m tests.hooks.other_libraries FOLDER` prints as JSON, by case, the steps of tests/hooks/program.py that differ
from the CPU's. It also prints what stderr had, and the hooks that are off. `before` and `after` the hooks each function
is put into another one, as such libraries do. `reload` reloads modules of Keras. `half` has a file of Keras, in the
folder, that is not the one in memory.

`python -m tests.hooks.other_libraries --reload` reloads each module that a hook names, after some of the program and in
a process of its own. It prints the modules, and the steps that TensorFlow does without the hooks and not with them.
"""

import contextlib
import functools
import importlib
import inspect
import io
import json
import pathlib
import sys

from tests.hooks import mutations, program

RELOADED = (
    "keras.src.trainers.data_adapters.array_slicing",
    "keras.src.trainers.data_adapters.array_data_adapter",
    "keras.src.utils.python_utils",
    "keras.src.trainers.trainer",
)
ADAPTER = "keras.src.trainers.data_adapters.array_data_adapter"


def places():
    """Where the hooks have replaced something."""
    from tensorflow_xpu import hooks

    return [(owner, name) for hook in hooks.HOOKS for owner, name, *_ in hook._replaced]


def put_around(found):
    """Puts a function of another library around each; the names of those that have been called."""
    called = set()

    def around(name, function):
        @functools.wraps(function)
        def theirs(*arguments, **named):
            called.add(name)
            return function(*arguments, **named)

        return theirs

    for owner, name in found:
        original = inspect.getattr_static(owner, name)
        if inspect.isfunction(original):
            setattr(owner, name, around(name, original))
    return called


def before():
    from tensorflow_xpu import hooks

    found = places()
    hooks.uninstall()
    called = put_around(found)
    hooks.install()
    return {**outcome(), "called": len(called)}


def after():
    from tensorflow_xpu import hooks

    called = put_around(places())
    seen = outcome()
    restored = hooks.uninstall()
    again = outcome()
    return {**seen, "again": again["different"], "restored": restored, "called": len(called)}


def reload():
    from tensorflow_xpu import hooks

    for name in RELOADED:
        importlib.reload(sys.modules[name])
    seen = outcome()
    hooks.uninstall()
    hooks.install()
    return {**seen, "again": outcome()["different"]}


def reloaded(name, device):
    """The program with a module that is reloaded after its first steps; None where that raises."""
    import tensorflow as tf

    with tf.device(device):
        for step in (program.function, program.fit, program.threads):
            step(tf)
    try:
        importlib.reload(sys.modules[name])
    except Exception:  # most of TensorFlow's modules register something, which they may once
        return None
    return program.run(device)


def alone(name):
    """The same without the hooks, on the CPU."""
    from tensorflow_xpu import hooks

    hooks.uninstall()
    return reloaded(name, "/cpu:0")


def reload_each():
    """By module that can be reloaded: the steps that TensorFlow does then, and an XPU does not."""
    from tensorflow_xpu import hooks

    named = {need.module for hook in hooks.HOOKS for need in hook.all_needs()}
    found = {}
    for name in sorted({"keras", "tensorflow", *named} & set(sys.modules)):
        theirs = mutations.in_child(lambda name=name: alone(name))
        if theirs is None or "died" in theirs:
            continue
        done = {step: EXPECTED[step] for step in theirs if mutations.alike(theirs[step], EXPECTED[step])}
        ours = mutations.in_child(lambda name=name: reloaded(name, "/xpu:0"))
        if len(done) > len(EXPECTED) // 2:  # after `framework.ops` TensorFlow can do next to nothing
            found[name] = mutations.differences(ours or {}, done)
    return found


def half():
    """As while pip upgrades Keras under a running program: another file under the same name."""
    from tensorflow_xpu import hooks

    hooks.uninstall()
    module = sys.modules[ADAPTER]
    path = pathlib.Path(module.__file__)
    text = path.read_text().replace("import ", "# more lines\n\n\nimport ", 1)
    other = pathlib.Path(sys.argv[-1]) / path.name
    other.write_text(text)
    for function in vars(module.ArrayDataAdapter).values():
        if inspect.isfunction(function):
            function.__code__ = function.__code__.replace(co_filename=str(other))
    hooks.install()
    return outcome()


def outcome():
    from tensorflow_xpu import hooks

    results = program.run("/xpu:0")
    off = [hook.name for hook in hooks.HOOKS if hook.state.startswith("off: ")]
    checked = [hook.name for hook in hooks.HOOKS if hook.state.startswith("on since its self-check")]
    return {"different": mutations.differences(results, EXPECTED), "off": off, "checked": checked}


def told(case):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        found = case()
    return {**found, "lines": [line for line in said.getvalue().splitlines() if line.startswith("tensorflow_xpu: ")]}


if __name__ == "__main__":
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    import tensorflow_xpu  # noqa: F401

    EXPECTED = mutations.in_child(lambda: program.run("/cpu:0"))
    if sys.argv[-1] == "--reload":
        print(json.dumps(reload_each()))
        sys.exit()
    cases = (before, after, reload, half)
    print(json.dumps({case.__name__: mutations.in_child(lambda case=case: told(case)) for case in cases}))
