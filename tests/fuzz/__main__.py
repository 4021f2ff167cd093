"""Random graphs of registered ops, each in clusters, op by op and on the CPU, and compared.

    python -m tests.fuzz --graphs 5000 --seed 0   these seeds and the 4999 that follow
    python -m tests.fuzz --show 17                the program of a seed, as a person can run it

A graph is made of the sweep's cases, whose arguments are results of other ops where these fit. It has variables,
control edges, branches, and loops with TensorArrays. It has empty tensors, shapes that change from call to call, and
now and then an index out of range. It is called three or four times. Results and variables have to be those of the CPU
op by op. They agree bit for bit where no rounding is involved, and within rounding where it is
(tests/fuzz/reference.py). Exceptions have to be of the same type. A graph that differs is reduced and printed as a
program. Ends with a table; the exit code is 1 if anything differed.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time

from tests.fuzz import workers
from tests.fuzz.comparison import Comparison, ops_in
from tests.fuzz.workers import Clusters, EndedError


class Report:
    """The findings of a run so far."""

    def __init__(self):
        self.graphs, self.steps, self.calls = 0, 0, 0
        self.ops: collections.Counter[str] = collections.Counter()
        self.clusters = Clusters()
        self.refused: collections.Counter[str] = collections.Counter()
        self.failed: dict[str, list[int]] = collections.defaultdict(list)

    def table(self) -> str:
        rows = [
            ("graphs", self.graphs),
            ("steps of them", self.steps),
            ("calls, each of three kinds", self.calls),
            ("ops covered", len(self.ops)),
            ("ops seen in clusters", len(self.clusters.ops)),
            ("clusters captured", self.clusters.captured),
            ("clusters run member by member", sum(self.clusters.not_captured.values())),
            *((f"  {why}", n) for why, n in self.clusters.not_captured.most_common(8)),
            *((f"graphs that every device refuses: {error}", n) for error, n in self.refused.items()),
            ("graphs that differ", sum(map(len, self.failed.values()))),
            *((f"  {kind}", f"{len(seeds)}: seeds {seeds[:12]}") for kind, seeds in self.failed.items()),
        ]
        return "\n".join(["| what | how many |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)])


def check(
    seeds,
    report: Report,
    say=print,
    reduce: bool = True,
    environment: dict[str, str] | None = None,
    source: str = "tests.fuzz.generate",
) -> None:
    """Runs the programs of these seeds; says what differs and how far it is.

    environment: for the processes. source: the module whose function `generate` makes a program of a seed.
    """
    from tests.fuzz.programs import standalone

    comparison = Comparison(environment)
    said = time.monotonic()
    try:
        for seed in seeds:
            try:
                program = comparison.clustered.ask("make", seed, source)
            except EndedError as error:
                report.refused["none, the CPU's own op ended the process"] += 1
                say(f"seed {seed}, while it was made on the CPU: {error}")
                continue
            verdict = comparison.verdict(program)
            report.graphs += 1
            report.ops.update(ops_in(program))
            report.steps += sum(ops_in(program).values())
            report.calls += len(program.calls)
            report.clusters.add(verdict.clusters)
            if verdict.refused:
                report.refused[verdict.refused] += 1
            if verdict.kind:
                report.failed[verdict.kind].append(seed)
                say(f"seed {seed} {verdict.kind}\n{verdict.details}")
                if reduce and len(report.failed[verdict.kind]) <= 3:
                    smallest, its_verdict = comparison.smallest(program, verdict.kind)
                    say(standalone(smallest, f"Seed {seed}, {verdict.kind}"))
                    say(its_verdict.details)
            if time.monotonic() - said > 30:
                said = time.monotonic()
                say(f"{report.graphs} graphs, {sum(map(len, report.failed.values()))} differ, at seed {seed}")
    finally:
        comparison.stop()


def main(prog: str = "python -m tests.fuzz", source: str = "tests.fuzz.generate") -> int:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=120, help="a call that takes more seconds hangs")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program of a seed and end")
    options = parser.parse_args()
    workers.SECONDS = options.patience
    if options.show is not None:
        from tests.fuzz import programs

        print(programs.standalone(workers.make(options.show, source), f"Seed {options.show}"))
        return 0
    report, seeds = Report(), range(options.seed, options.seed + options.graphs)
    check(seeds, report, lambda text: print(text, flush=True), source=source)
    print(report.table())
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
