"""Every private name that the package needs, changed in every way: what becomes of a program then.

`python -m tests.hooks.mutations` runs tests/hooks/program.py once for each mutation of a hook's name, in a process of
its own. That is forked from one that has imported TensorFlow and Keras. It compares the numbers with the CPU's. For a
name that functions of the package use (hooks/features.py) it runs tests/hooks/uses.py. `--write` puts the outcomes into
docs/data/hook_mutations.tsv; `--names` and `--part 2/7` run some of them. The exit status is 1 if one is bad.

A mutation is what a TensorFlow or Keras of another version may look like to a hook. The rest of TensorFlow bears it, as
it would bear a change of its own: only code of the hooks sees it.
"""

import argparse
import contextlib
import inspect
import io
import json
import math
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "docs" / "data" / "hook_mutations.tsv"
# Lines about hooks that are installed all the same, and about those that are not.
TELLING = {
    "TFE_ContextSetRunEagerOpAsFunction": "raises",
    "context_safe": "absent",
    "normalize_element": "absent",
    "model_supports_jit": "other parameters",
    "get_tf_dataset": "absent",
    "put": "absent",
    "export_run_metadata": "raises",
}
HOW = ("absent", "other parameters", "raises", "returns something else")
_ABSENT = object()
IS_BASE = 1 << 10  # of a type's flags: others may derive from it


def ours(depth):
    """True if code of the package is on the stack there."""
    return sys._getframe(depth).f_globals.get("__name__", "").startswith("tensorflow_xpu")


def something_else(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, (str, bytes)):
        return value[:0]
    if isinstance(value, (list, tuple)):
        return type(value)(reversed(value)) if len(set(map(repr, value))) > 1 else type(value)()
    if hasattr(value, "__enter__"):
        return contextlib.nullcontext()
    if callable(value):
        return lambda *arguments, **named: something_else(value(*arguments, **named))
    return None


# The mutated name, if a hook has put a function of its own around what it found there. That calls the original as
# TensorFlow would, so what the original does is TensorFlow's affair.
replaced = []


class Mutant:
    """Calls the original, unless a hook calls it: then it misbehaves."""

    def __init__(self, need, original, how):
        self.need, self.original, self.how = need, original, how

    def __call__(self, *arguments, **named):
        if replaced or not ours(3):
            return self.original(*arguments, **named)
        if self.how == "other parameters":
            raise TypeError(f"{self.need.path}() takes other arguments")
        if self.how == "raises":
            raise RuntimeError(f"{self.need.path} raises")
        return something_else(self.original(*arguments, **named))


def misbehaving(need, original, how):
    """A function in place of the original, which the same module seems to define."""
    mutant = Mutant(need, original, how)
    namespace = {"__name__": need.module, "mutant": mutant}
    exec("def function(*arguments, **named):\n    return mutant(*arguments, **named)", namespace)
    function = namespace["function"]
    if how == "other parameters":
        kinds = inspect.Parameter
        parameters = [kinds("changed", kinds.POSITIONAL_OR_KEYWORD), kinds("by", kinds.KEYWORD_ONLY)]
        function.__signature__ = inspect.Signature(parameters)
    elif hasattr(original, "__code__"):
        function.__signature__ = inspect.signature(original)
    return function


def mutant_of(need, original, how):
    """The object with the name after the mutation; _ABSENT for nothing."""
    if how == "absent":
        return _ABSENT
    if isinstance(original, property):
        return property(misbehaving(need, original.fget, how), original.fset, original.fdel)
    if isinstance(original, type) and how != "raises":
        bases = (original,) if original.__flags__ & IS_BASE and type(original) is type else ()
        return type(original.__name__ + "Changed", bases, {})
    if not callable(original) and how == "returns something else":
        return something_else(original)
    return misbehaving(need, original, how)


def apply(need, how):
    """Mutates; returns what restores the name for TensorFlow itself."""
    owner, name = need.owner(), need.names[-1]
    before, original = vars(owner).get(name, _ABSENT), need.find_any()
    mutant = mutant_of(need, original, how)
    if mutant is not _ABSENT:
        setattr(owner, name, mutant)
    elif before is not _ABSENT:
        delattr(owner, name)

    def restore():
        if vars(owner).get(name, _ABSENT) is not mutant:
            replaced.append(name)
        elif before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    return restore


def mutated_program(need, how):
    """Runs in a process of its own: the program's results, and what the hooks say of themselves."""
    from tensorflow_xpu import dlpack, hooks
    from tests.hooks import program

    hooks.uninstall()
    dlpack.uninstall()
    restore = apply(need, how)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        hooks.install()
        dlpack.install()
        restore()
        results = program.run("/xpu:0")
    return {"results": results, "said": said.getvalue(), "states": {hook.name: hook.state for hook in all_hooks()}}


def mutated_use(feature, need, how):
    """Runs in a process of its own: the numbers that functions of the package give, or their error, and their lines."""
    from tensorflow_xpu.hooks.patch import UnknownError
    from tests.hooks import uses

    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        restore = apply(need, how)
        with contextlib.suppress(UnknownError):  # which the first use says again
            feature.find()
        restore()
        results = uses.run(feature.name)
    return {"results": results, "said": said.getvalue()}


def all_hooks():
    """Those of every program, and those of programs that import the package."""
    from tensorflow_xpu import dlpack, hooks

    return [*hooks.HOOKS, dlpack.WITHOUT_COPY, dlpack.BY_COPY]


def in_child(work):
    """The result of a function in a forked process, or how that process ended."""
    with tempfile.NamedTemporaryFile("w+") as file:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                pathlib.Path(file.name).write_text(json.dumps(work()))
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        text = pathlib.Path(file.name).read_text()
    return json.loads(text) if text else {"died": os.waitstatus_to_exitcode(status)}


def differences(results, expected):
    """The differences between the results of two programs."""
    return [step for step, numbers in expected.items() if not alike(results.get(step), numbers)]


def alike(found, numbers):
    if isinstance(found, str) or isinstance(numbers, str) or len(found) != len(numbers):
        return found == numbers
    return all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for a, b in zip(found, numbers))


def verdict(need, outcome, expected):
    """The outcome in words, and whether it is bad."""
    if "died" in outcome:
        return f"the process ended with {outcome['died']}", True
    off = [name for name, state in outcome["states"].items() if state.startswith("off: ")]
    wrong = differences(outcome["results"], expected)
    if {"dlpack", "dlpack_by_copy"} <= set(off):  # what TensorFlow's own DLPack says of an XPU
        wrong = [step for step in wrong if step != "dlpack"]
    if wrong:
        return f"wrong: {wrong[0]}: {str(outcome['results'][wrong[0]])[:120]}", True
    lines = re.findall(r"^tensorflow_xpu: the hooks? (.*?) (?:is|are) off: ", outcome["said"], re.MULTILINE)
    said = [name for line in lines for name in re.split(", | and ", line)]
    if sorted(said) != sorted(off):
        return f"off are {', '.join(off) or 'none'}, said of {', '.join(said) or 'none'}", True
    if not off:
        return "all hooks are on, results are right", False
    return f"{', '.join(off)} off with a line, results are right", False


def verdict_of_use(outcome, expected):
    """The same for functions of the package."""
    results = outcome.get("results")
    if results is None:
        return f"the process ended with {outcome['died']}", True
    lines = outcome["said"].count("\ntensorflow_xpu: ") + outcome["said"].startswith("tensorflow_xpu: ")
    if isinstance(results, str):
        return (results[:60], True) if not results.startswith("XPUError: ") else ("an XPUError says why", False)
    if lines > 1:
        return f"{lines} lines", True
    with_line = " with a line" if lines else ""
    if alike(results, expected):
        return f"the results are right{with_line}", False
    return f"a part of the results{with_line}", not lines


def uses_of():
    """The features with a private name each."""
    from tensorflow_xpu.hooks.features import FEATURES

    return [(feature, need) for feature in FEATURES for need in feature.all_needs()]


def targets():
    """The private names of all hooks that are of use here, each once."""
    needs = {}
    for hook in all_hooks():
        if not hook.unless():
            for need in hook.all_needs():
                needs.setdefault(need.path, need)
    return [needs[path] for path in sorted(needs) if exists(needs[path])]


def exists(need):
    from tensorflow_xpu.hooks.patch import UnknownError

    try:
        need.owner()
    except UnknownError:
        return False
    return need.find_any() is not None


def run(rows):
    """Yields each mutation with its outcome and whether it is bad."""
    from tests.hooks import program, uses

    if any(feature for feature, _, _ in rows):
        of_uses = {feature.name: in_child(lambda name=feature.name: uses.run(name)) for feature, _ in uses_of()}
        assert not any(isinstance(numbers, (str, dict)) for numbers in of_uses.values()), of_uses
    of_hooks = [row for row in rows if row[0] is None]
    expected = in_child(lambda: program.run("/cpu:0")) if of_hooks else {}
    strange = [step for step, numbers in expected.items() if isinstance(numbers, str) or not numbers]
    assert not strange, (strange, expected)
    for feature, need, how in rows:
        if feature is None:
            outcome = in_child(lambda need=need, how=how: mutated_program(need, how))
            yield need, how, *verdict(need, outcome, expected)
        else:
            outcome = in_child(lambda feature=feature, need=need, how=how: mutated_use(feature, need, how))
            words, bad = verdict_of_use(outcome, of_uses[feature.name])
            yield need, how, f"{feature.name}: {words}", bad


def show(head, outcomes, table):
    """Prints lines of a table as they come, each with whether it is bad, and writes them to `table` unless it is None.

    Returns the exit status: 1 if a line is bad.
    """
    lines, bad = [head], 0
    for line, is_bad in outcomes:
        bad += is_bad
        lines.append(line)
        print(("BAD  " if is_bad else "") + line, flush=True)
    if table is not None:
        table.write_text("\n".join(lines) + "\n")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default="", help="a pattern of names")
    parser.add_argument("--telling", action="store_true", help="the most telling ones alone")
    parser.add_argument("--part", default="0/1", help="2/7 is every seventh mutation, from the third")
    parser.add_argument("--write", action="store_true", help=f"writes {TABLE.relative_to(ROOT)}")
    options = parser.parse_args()
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    import tensorflow_xpu  # noqa: F401

    part, parts = map(int, options.part.split("/"))
    rows = [(None, need, how) for need in targets() for how in HOW]
    rows += [(feature, need, how) for feature, need in uses_of() for how in HOW]
    rows = [row for row in rows if re.search(options.names, row[1].path)]
    if options.telling:
        rows = [row for row in rows if TELLING.get(row[1].names[-1]) == row[2]]
    outcomes = (
        (f"{need.path}\t{how}\t{words}", is_bad) for need, how, words, is_bad in run(rows[part % parts :: parts])
    )
    return show("name\tmutation\toutcome", outcomes, TABLE if options.write else None)


if __name__ == "__main__":
    sys.exit(main())
