"""Every lie to the check of a hook in C++: what becomes of a program then.

`python -m tests.hooks.lies` runs tests/hooks/internals_program.py once for each thing that a check looks at, with that
thing falsified (TF_XPU_FAULT=internal=HOOK:lie@N). It compares the numbers with the CPU's, and the lines with what the
check has to say. `--write` puts the outcomes into docs/data/hook_lies.tsv; `--names copies,jit` and `--part 2/7` run
some of them. The exit status is 1 if one is bad.
"""

import argparse
import functools
import json
import sys

from tests.hooks.each_off import OFF_WITH, OFF_WITH_IN_PYTHON
from tests.hooks.mutations import differences, show
from tests.support.installed import ROOT
from tests.support.processes import run

TABLE = ROOT / "docs" / "data" / "hook_lies.tsv"
HEAD = "hook\tlie\twhat the check sees\toutcome"
# A line of the program that says nothing of hooks.
USUAL = "tensorflow_xpu: jit_compile=True: XLA has no compiler for the device type XPU"
TELLING = {("variables", "1"), ("copies", "1")}
# A forked child is refused without them.
FOR_FORKS = ("copies", "fork_threads")
REFUSED = "RuntimeError: refused"


def outcome_of(device, environment=(), steps=()):
    """The program's results with the states of all hooks, its lines, and the process."""
    outcome = run("-m", "tests.hooks.internals_program", device, *steps, environment=environment, cwd=ROOT, timeout=900)
    assert outcome.returncode == 0, outcome
    lines = [line for line in outcome.warnings if not line.startswith(USUAL)]
    return json.loads(outcome.stdout.splitlines()[-1]), lines, outcome


@functools.cache
def expected():
    """The CPU's numbers."""
    results = outcome_of("/cpu:0", {"TF_XPU_DISABLE": "1"})[0]["results"]
    assert [step for step, numbers in results.items() if isinstance(numbers, str) or not numbers] == []
    return results


def wrong_steps(name, results):
    """The steps whose results are not as they should be while that hook is off: the CPU's numbers."""
    wanted = {step: numbers for step, numbers in expected().items() if step in results}
    if name in FOR_FORKS and "forked" in wanted:
        wanted["forked"] = REFUSED
    return differences(results, wanted)


def of_checks():
    """By hook: the words of each lie that its check would notice, in the order in which the check looks."""
    import tensorflow  # noqa: F401

    from tensorflow_xpu import _core
    from tensorflow_xpu.hooks.runtime import interop_module

    found = _core.ask_core("XpuCore_DescribeLies")
    module = interop_module()
    for name in module.hooks:
        count, _ = module.check_hook(name, 0)
        found[name] = [module.check_hook(name, lie)[1] for lie in range(1, count + 1)]
    return {row["name"]: found.get(row["name"], []) for row in _core.internals()}


def rows_of_checks():
    """The first columns of the table."""
    return [
        (name, str(lie), words) for name, all_words in of_checks().items() for lie, words in enumerate(all_words, 1)
    ]


def rows_of_table():
    head, *rows = TABLE.read_text().splitlines()
    assert head == HEAD
    return [tuple(row.split("\t")) for row in rows]


def verdict_of_required(words, found, lines):
    """The same where there is no XPU without the hook."""
    if found["states"]:
        return "there is an XPU", True
    if wrong := differences(found["results"], expected()):
        return f"wrong: {wrong[0]}", True
    if len(lines) != 1 or words not in lines[0]:
        return f"said: {lines}", True
    return "no XPU, with a line; results are right", False


def verdict(name, words, found, lines):
    """The outcome in words, and whether it is bad."""
    if wrong := wrong_steps(name, found["results"]):
        return f"wrong: {wrong[0]}: {str(found['results'][wrong[0]])[:120]}", True
    off = [hook for hook, state in found["states"].items() if state != "on"]
    with_it = OFF_WITH.get(name, set())
    if set(off) != {name} | with_it or found["states"][name] != f"off: {words}":
        return f"off are {', '.join(off) or 'none'}", True
    if len(lines) != 1 or not lines[0].startswith(f"tensorflow_xpu: the hook {name} is off: {words}. "):
        return f"said: {lines}", True
    needing = [hook for hook, state in found["in_python"].items() if f"needs {name}, which is off" in state]
    if set(needing) != OFF_WITH_IN_PYTHON.get(name, set()):
        return f"off in Python are {', '.join(needing) or 'none'}", True
    others = "".join(f", {hook} off with it" for hook in [*off, *needing] if hook != name)
    forked = ", a forked child is refused" if found["results"]["forked"] == REFUSED else ""
    return f"off with a line{others}; results are right{forked}", False


def judge(name, lie, words):
    """Runs the program with that lie; the outcome in words, and whether it is bad."""
    from tensorflow_xpu.hooks.internals import REQUIRED

    environment = {"TF_XPU_FAULT": f"internal={name}:lie@{lie}"}
    found, lines, _ = outcome_of("/cpu:0" if name in REQUIRED else "/xpu:0", environment)
    if name in REQUIRED:
        return verdict_of_required(words, found, lines)
    return verdict(name, words, found, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default="", help="hooks, with commas between; all if there are none")
    parser.add_argument("--telling", action="store_true", help="the most telling ones alone")
    parser.add_argument("--part", default="0/1", help="2/7 is every seventh lie, from the third")
    parser.add_argument("--write", action="store_true", help=f"writes {TABLE.relative_to(ROOT)}")
    options = parser.parse_args()
    names = [name for name in options.names.split(",") if name]
    part, parts = map(int, options.part.split("/"))
    rows = [row for row in rows_of_checks() if not names or row[0] in names]
    if options.telling:
        rows = [row for row in rows if row[:2] in TELLING]
    outcomes = ((row, *judge(*row)) for row in rows[part % parts :: parts])
    lines = (("\t".join((*row, words)), is_bad) for row, words, is_bad in outcomes)
    return show(HEAD, lines, TABLE if options.write else None)


if __name__ == "__main__":
    sys.exit(main())
