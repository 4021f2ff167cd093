"""Programs on three devices, what differs between them, and the smallest program that still does."""

from __future__ import annotations

import collections
import dataclasses
import time

import numpy as np

from tests.fuzz.programs import Branch, Loop, Op, Program, all_steps, reduced
from tests.fuzz.workers import Clusters, EndedError, Outcome, Worker

CLUSTERS, ALONE, CPU = "with clusters", "op by op", "on the CPU"

# A reduction ends after so many seconds.
REDUCTION = 60


@dataclasses.dataclass
class Verdict:
    """kind: what went wrong, in the same words for the same fault; nothing if all is well.

    refused: the exception that every device gives.
    """

    kind: str = ""
    details: str = ""
    clusters: Clusters = dataclasses.field(default_factory=Clusters)
    refused: str = ""


def difference(outcome: Outcome, wanted: tuple) -> str:
    """The first array that is not what was expected."""
    calls, variables = wanted
    named = [(f"call {i}, result {k}", b) for i, call in enumerate(calls) for k, b in enumerate(call)]
    named += [(f"variable {k}", b) for k, b in enumerate(variables)]
    got = [array for call in outcome.calls for array in call] + outcome.variables
    for (name, bounded), array in zip(named, got, strict=True):
        want = bounded.value
        if array.shape != want.shape or array.dtype != want.dtype:
            return f"{name} is {array.dtype}{list(array.shape)}, expected {want.dtype}{list(want.shape)}"
        wide = np.complex128 if want.dtype.kind == "c" else np.float64 if want.dtype.kind in "fV" else want.dtype
        found, right = array.astype(wide), want.astype(wide)
        allowed = 0.0 if bounded.error is None else bounded.error
        with np.errstate(invalid="ignore"):
            wrong = found != right if bounded.error is None else ~(np.abs(found - right) <= allowed)
        if np.any(wrong):
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            bound = np.broadcast_to(allowed, want.shape)[at]
            return (
                f"{name}: {np.count_nonzero(wrong)} of {want.size} elements are wrong, the first at {list(at)}: "
                f"{found[at]}, expected {right[at]} within {bound:.3g}"
            )
    return ""


class Comparison:
    """Runs programs in two processes, which have these environment variables."""

    def __init__(self, environment: dict[str, str] | None = None):
        self.clustered, self.alone = (Worker({"TF_XPU_FUSION": on, **(environment or {})}) for on in "10")

    def stop(self) -> None:
        self.clustered.stop()
        self.alone.stop()

    def verdict(self, program: Program) -> Verdict:
        outcomes: dict[str, Outcome] = {}
        clusters = Clusters()
        try:
            wanted = self.clustered.ask("expected", program)
        except EndedError as error:
            return Verdict("crash of the CPU's ops one by one", str(error))
        for worker, names in ((self.clustered, {CPU: "/cpu:0", CLUSTERS: "/xpu:0"}), (self.alone, {ALONE: "/xpu:0"})):
            try:
                found, of_worker = worker.ask("run", program, list(names.values()))
            except EndedError as error:
                return Verdict(f"crash {'/'.join(names)}", str(error))
            outcomes.update(zip(names, found))
            clusters.add(of_worker)
        if len({o.error for o in outcomes.values()}) > 1:
            told = {name: f"{o.error or 'no error'} {o.message}" for name, o in outcomes.items()}
            kind = f"other errors: {', '.join(f'{name} {o.error or None}' for name, o in outcomes.items())}"
            return Verdict(kind, "\n".join(f"{k}: {v}" for k, v in told.items()), clusters)
        if wanted is None or outcomes[CPU].error:
            return Verdict("", outcomes[CPU].message, clusters, outcomes[CPU].error or "unsuitable")
        wrong = {name: difference(o, wanted) for name, o in outcomes.items()}
        if not any(wrong.values()):
            return Verdict(clusters=clusters)
        kind = f"differs: {', '.join(name for name, d in wrong.items() if d)}"
        return Verdict(kind, "\n".join(f"{name}: {d}" for name, d in wrong.items() if d), clusters)

    def smallest(self, program: Program, kind: str) -> tuple[Program, Verdict]:
        """The program with as few steps, calls and outputs as show the same."""
        until = time.monotonic() + REDUCTION
        best, verdict = program, self.verdict(program)

        def attempt(candidate: Program) -> bool:
            nonlocal best, verdict
            if time.monotonic() > until or not (candidate.outputs or candidate.variables):
                return False
            found = self.verdict(candidate)
            if found.kind == kind:
                best, verdict = candidate, found
            return found.kind == kind

        shrinks = True
        while shrinks and time.monotonic() < until:
            shrinks = False
            for outputs in ([o] for o in best.outputs) if len(best.outputs) > 1 else ():
                if attempt(dataclasses.replace(best, outputs=tuple(outputs))):
                    shrinks = True
                    break
            steps = list(all_steps(best.steps))
            size = max(len(steps) // 2, 1)
            while size:
                for start in range(len(steps) - size, -1, -size):
                    current = list(all_steps(best.steps))
                    if attempt(reduced(best, current[start : start + size])):
                        shrinks = True
                size //= 2
            for calls in (best.calls[:-1], best.calls[1:]):
                if calls and attempt(dataclasses.replace(best, calls=calls)):
                    shrinks = True
                    break
        return best, verdict


def ops_in(program: Program) -> collections.Counter[str]:
    names = {Branch: "tf.cond", Loop: "tf.while_loop"}
    return collections.Counter(s.op if isinstance(s, Op) else names[type(s)] for s in all_steps(program.steps))
