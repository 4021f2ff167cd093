"""``python -m tensorflow_xpu selftest``: a minute of checks on what is installed, with nothing but the wheel.

Each check runs in a process that may die of it: what it examines may be broken. The exit code is 0 if all passed, 1 if
one failed or TensorFlow is missing, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from tensorflow_xpu import _worker
from tensorflow_xpu._terminal import GREEN, GREY, RED, Progress, paint
from tensorflow_xpu._version import __version__
from tensorflow_xpu._worker import Outcome

#: Without it no other check has a device to run on.
FIRST = "devices"


def _environment(variables: str, folder: pathlib.Path) -> dict[str, str]:
    """That of a group's process: the user's own, or without the plugin's options but for those of the group."""
    from tensorflow_xpu import _checks

    quiet = {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1")}
    if not variables:
        return {**os.environ, **quiet}
    rest = {name: value for name, value in os.environ.items() if not name.startswith("TF_XPU_")}
    name, _, value = variables.partition("=")
    given = {"TF_XPU_CONFIG": "none", name: value}
    if name == "TF_XPU_CONFIG":
        file = folder / "config"
        file.write_text(_checks.FILE, encoding="utf-8")
        given[name] = str(file)
    return {**rest, **quiet, **given}


def _groups(patterns: Sequence[str]) -> dict[str, list[str]]:
    """The names of the checks that fit, by the environment that they need; ``FIRST`` comes before all others."""
    from tensorflow_xpu import _checks

    wanted = [pattern.lower() if "*" in pattern else f"*{pattern.lower()}*" for pattern in patterns]
    found: dict[str, list[str]] = {}
    for variables, checks in _checks.CHECKS.items():
        names = [n for n in checks if not wanted or any(fnmatch.fnmatchcase(n.lower(), w) for w in wanted)]
        if names:
            found[variables] = names
    if found.get(""):
        found[""] = [FIRST, *(name for name in found[""] if name != FIRST)]
    return found


def examine(groups: dict[str, list[str]], limit: float, progress: Progress) -> Iterator[Outcome]:
    """Runs checks.

    Args:
        groups: names of checks by the environment that they need.
        limit: seconds that one may take.
        progress: is told of each that begins.

    Yields:
        An outcome for each; without a device only the first one is run.
    """
    no_device = False
    with tempfile.TemporaryDirectory() as folder:
        for variables, names in groups.items():
            outcomes: Iterator[Outcome] = iter(())
            if not no_device:
                environment = _environment(variables, pathlib.Path(folder))
                outcomes = _worker.run("tensorflow_xpu._checks", names, environment, limit, progress.step)
            seen = set()
            for outcome in outcomes:
                seen.add(outcome.name)
                yield outcome
                if outcome.name == FIRST and outcome.error:
                    no_device = True
                    break
            for name in names:
                if name not in seen:
                    progress.step(name)
                    yield Outcome(name, error="not run, since there is no device", not_run=True)


def _line(outcome: Outcome, width: int) -> str:
    if outcome.not_run:
        return f" {paint('--', GREY)}  {outcome.name:<{width}}  {outcome.error}"
    if not outcome.error:
        return f" {paint('ok', GREEN)}  {outcome.name:<{width}}  {outcome.result}"
    lines = [f" {paint('!!', RED)}  {outcome.name:<{width}}  {outcome.error}"]
    lines += [f"     {line}" for line in outcome.details.splitlines()]
    return "\n".join(lines)


def _summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    failed = [outcome for outcome in outcomes if outcome.error and not outcome.not_run]
    if not failed:
        return paint(f"All {len(outcomes)} checks passed in {seconds:.0f} s.", GREEN)
    ran = sum(not outcome.not_run for outcome in outcomes)
    first = failed[0]
    text = f"{len(failed)} of {ran} checks failed in {seconds:.0f} s, first {first.name!r}: {first.error}"
    left = f"; {len(outcomes) - ran} were not run" if ran < len(outcomes) else ""
    if first.name == FIRST:
        advice = "`python -m tensorflow_xpu doctor` says what to do about the installation"
    else:
        advice = f"`python -m tensorflow_xpu selftest {first.name!r}` runs this one alone"
    return f"{paint(text, RED)}{left}\n{advice}"


def main(arguments: Sequence[str]) -> int:
    """Runs ``selftest``. Returns 0 if all passed, 1 if a check failed or TensorFlow is missing, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow_xpu selftest",
        description="Checks the installed plugin: devices, ops of each family against the CPU, a Keras training, "
        "DLPack, memory, settings. It takes a minute.",
    )
    parser.add_argument("check", nargs="*", help="part of a check's name, or a pattern such as 'ops: *' (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--list", action="store_true", help="print the names of the checks and run none")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="what one check may take (120)")
    options = parser.parse_args(list(arguments))
    if options.limit <= 0:
        parser.error(f"--limit {options.limit:g} makes no sense: expected a number of seconds above 0")
    if importlib.util.find_spec("tensorflow") is None:
        text = 'TensorFlow is not installed: pip install "tensorflow-cpu==2.21.*"'
        print(f"tensorflow_xpu: {text}", file=sys.stderr)
        if options.json:
            print(json.dumps({"ok": False, "error": text}))
        return 1
    groups = _groups(options.check)
    names = [name for group in groups.values() for name in group]
    if not names:
        parser.error(f"no check is called {' or '.join(map(repr, options.check))}: --list names them")
    if options.list:
        print("\n".join(names))
        return 0
    began = time.monotonic()
    outcomes = []
    with Progress(len(names)) as progress:
        for outcome in examine(groups, options.limit, progress):
            outcomes.append(outcome)
            if not options.json:
                progress.print(_line(outcome, max(map(len, names))))
    seconds = time.monotonic() - began
    ok = not any(outcome.error for outcome in outcomes)
    if options.json:
        checks = [dataclasses.asdict(outcome) for outcome in outcomes]
        print(json.dumps({"ok": ok, "version": __version__, "seconds": seconds, "checks": checks}, indent=2))
    else:
        print(f"\n{_summary(outcomes, seconds)}")
    return 0 if ok else 1
