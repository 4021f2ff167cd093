"""The XPU against what else a user of the same machine could choose: stock TensorFlow in three settings, JAX, PyTorch.

    python -m benchmarks.contest [contest] [inference] [generation] [scales] [variants] [--quick] [--write]
        [--workloads "NAME;NAME"]

Each contestant runs a workload (workloads.py) in a process of its own, and all of them wait for their turn. The rounds
alternate, and there are more of them where they differ. A figure is the median of the rounds; what it is compared with
comes from the same rounds. `contest` is all against all. `inference` is deployed models against OpenVINO, ONNX Runtime
and LiteRT, too (inference.py). `generation` is text generation against JAX and llama.cpp, and quantized layers against
floats (generation.py). `scales` shows how a step's time grows with batch, sequence, layers and small ops.
`variants` shows the worth of each pass and of direct calls. --write puts the tables and plots into docs/, and all
figures into benchmarks/results/.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Sequence

from benchmarks import engines, generation, inference, inference_models, quantized
from benchmarks.measure import in_process
from benchmarks.race import CONTESTANTS, VARIANTS, XPU, Row, measured
from benchmarks.roofline import Roof
from benchmarks.workloads import QUICK, SCALES, WORKLOADS, find

ROUNDS, QUICK_ROUNDS = 7, 3
# Whom steps of several sizes are compared with, and where the XPU's own variants are seen.
SCALED = [XPU, "TensorFlow", "TensorFlow with XLA", "JAX"]
VARIED = ["plain CNN", "ResNet50, inference", "Transformer encoder, small", "LSTM", "MLP", "many small ops"]


def mean(ratios: list[float]) -> str:
    """Their geometric mean, for people."""
    return f"{statistics.geometric_mean(ratios):.2f}" if ratios else "-"


def table(rows: list[Row], sizes: dict[str, str], roof: Roof | None = None) -> str:
    """Markdown: milliseconds of a step, and how many times as fast as the best of the others the XPU is. Also the share
    of its step that the machine needs at least.
    """
    names = list(CONTESTANTS)
    lines = [f"| workload | {' | '.join(names)} | best other / XPU | roof |", "|---|" + "---|" * (len(names) + 2)]
    for row in rows:
        cells = [f"{row.median(name) * 1e3:.3g}" if name in row.rounds else "-" for name in names]
        ratio = f"{row.times_as_fast(row.best()):.2f}"
        share = "-"
        if roof is not None and row.commands:
            share = f"{roof.seconds(row.commands, 'bfloat16' in row.workload) / row.median(XPU):.0%}"
        lines.append(f"| {row.workload}: {sizes[row.workload]} | {' | '.join(cells)} | {ratio} | {share} |")
    means = [mean([row.times_as_fast(name) for row in rows if name in row.rounds]) for name in names]
    best = mean([row.times_as_fast(row.best()) for row in rows])
    lines.append(f"| geometric mean of time / XPU's | {' | '.join(means)} | {best} | |")
    return "\n".join(lines)


def scales_table(rows: dict[str, dict[int, Row]]) -> str:
    """Milliseconds of a step by what grows."""
    lines = [f"| what grows | size | {' | '.join(SCALED)} |", "|---|---|" + "---|" * len(SCALED)]
    for kind, by_size in rows.items():
        for size, row in by_size.items():
            cells = [f"{row.median(name) * 1e3:.3g}" if name in row.rounds else "-" for name in SCALED]
            lines.append(f"| {kind}: {find(row.workload).size} | {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def variants_table(rows: list[Row]) -> str:
    """How many times as long a step takes with something left out."""
    lines = [f"| | {' | '.join(row.workload for row in rows)} |", "|---|" + "---|" * len(rows)]
    for name in VARIANTS:
        cells = [f"{row.times_as_fast(name):.2f}" if name in row.rounds else "-" for row in rows]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def generation_section(models: list[generation.Generation], layers: list[Row], networks: list[Row]) -> str:
    """The tables of generation that there are, each behind its explanation."""
    from benchmarks.document import machine, wrapped

    parts = [wrapped(GENERATION.format(machine=machine())), generation.table(models)]
    parts += [wrapped(LAYERS), generation.layers_table(layers)] if layers else []
    parts += [wrapped(NETWORKS), quantized.table(networks)] if networks else []
    return "\n\n".join(part.strip() for part in parts)


@dataclasses.dataclass
class Race:
    """The task: workloads and contestants, deployed models and engines, who generates, rounds; if pages are written."""

    workloads: list[str]
    contestants: list[str]
    deployed: list[str]
    engines: list[str]
    generators: list[str]
    rounds: int
    write: bool

    def keep(self, name: str, rows: Sequence[Row], text: str) -> None:
        if self.write:
            from benchmarks import document, plots

            document.keep(name, rows, text)
            plots.means(document.answers(), document.machine())

    def roof(self) -> Roof:
        roof = Roof(**json.loads(in_process("benchmarks.roofline").splitlines()[-1]))
        print(f"   {roof}", flush=True)
        return roof

    def contest(self) -> None:
        from benchmarks.document import machine, wrapped

        roof = self.roof()
        rows: list[Row] = []
        text = ""
        for row in measured(self.workloads, self.contestants, self.rounds, counted=True):
            rows.append(row)
            text = table(rows, {name: workload.size for name, workload in WORKLOADS.items()}, roof)
            plot = ""
            if self.write:
                from benchmarks import plots

                plot = f"\n![the contest](plots/{plots.contest(rows, machine()).name})\n"
            # These results stay if the rest is broken off.
            self.keep("contest", rows, f"{wrapped(CONTEST.format(machine=machine(), roof=roof))}\n{plot}\n{text}")
        print(text)

    def inference(self) -> None:
        from benchmarks.document import machine, wrapped

        roof = self.roof()
        rows: list[inference.Deployment] = []
        for row in inference.measured(self.deployed, self.engines, self.rounds):
            rows.append(row)
            plot = ""
            if self.write:
                from benchmarks import plots

                plot = f"\n![the contest of inference](plots/{plots.contest(rows, machine(), 'inference').name})\n"
            text = f"{inference.table(rows, roof)}\n\n{wrapped(COSTS_TEXT)}\n\n{inference.costs_table(rows)}"
            self.keep("inference", rows, f"{wrapped(INFERENCE.format(machine=machine(), roof=roof))}\n{plot}\n{text}")
        print(inference.table(rows, roof))
        print(inference.costs_table(rows))

    def generation(self) -> None:
        models: list[generation.Generation] = []
        layers: list[Row] = []
        networks: list[Row] = []

        def keep() -> None:
            self.keep("generation", [*models, *layers, *networks], generation_section(models, layers, networks))

        for model in generation.models(self.generators, self.rounds, plan := generation.usual()):
            models.append(model)
            keep()
        for layer in generation.layers(self.rounds, plan):
            layers.append(layer)
            keep()
        for network in quantized.measured(self.rounds):
            networks.append(network)
            keep()
        print(generation.table(models))
        print(generation.layers_table(layers))
        print(quantized.table(networks))

    def scales(self) -> None:
        names = {f"{kind}={size}": (kind, size) for kind, sizes in SCALES.items() for size in sizes}
        rows: dict[str, dict[int, Row]] = {kind: {} for kind in SCALES}
        for row in measured(list(names), [name for name in SCALED if name in self.contestants], self.rounds):
            kind, size = names[row.workload]
            rows[kind][size] = row
        plot = ""
        if self.write:
            from benchmarks import plots

            plot = f"\n![scales](plots/{plots.scales(rows, SCALED).name})\n"
        every = [row for by_size in rows.values() for row in by_size.values()]
        self.keep("scales", every, f"{SCALES_TEXT}{plot}\n{scales_table(rows)}")
        print(scales_table(rows))

    def variants(self) -> None:
        from benchmarks.document import wrapped

        rows = list(measured(VARIED, [XPU, *VARIANTS], self.rounds))
        self.keep("variants", rows, f"{wrapped(VARIANTS_TEXT)}\n{variants_table(rows)}")
        print(variants_table(rows))


CONTEST = """Milliseconds of a step in Keras's own `fit` or `predict` on NumPy arrays, by
`python -m benchmarks.contest` on {machine}. All contestants have the same weights and data. Each has a process of its
own, and they take turns.

- **best other / XPU** is the time of the fastest other contestant divided by the XPU's. Above 1 the XPU is first.
- **roof** is the least time that the step's commands need on this machine, as a share of the XPU's time. The rest of a
  step is Keras, Python, TensorFlow, data that arrives late, and commands that could be faster. Winograd's algorithm
  needs fewer operations than are counted, hence more than 100%.

The roof follows from rates measured in the same run: {roof}.
"""
INFERENCE = """Milliseconds of a call on NumPy arrays, by `python -m benchmarks.contest inference` on {machine}. Each
engine loads the same Keras model by Keras's own exporters, has a process of its own, and takes turns with the others. A
dash is an engine that cannot: the exporter or the engine refuses the model, or its result differs by more than 1%.

- **best other / XPU** is the time of the fastest other engine divided by the XPU's. Above 1 the XPU is first.
- **roof** is the least time that the call's commands need, as a share of the XPU's time, as in the contest.

The roof follows from rates measured in the same run: {roof}.
"""
COSTS_TEXT = """The first number is the seconds from the start of the process to the first result, less the engine's own
import. The second is the MiB that the process holds at most beyond that import.
"""
GENERATION = """Tokens per second of one sequence, greedy, by `python -m benchmarks.contest generation` on {machine}.
The model is a GPT-2 of 6 layers of 512 with 8000 words, 32 tokens of prompt and 160 new ones. All contestants have the
same random weights, a process of their own, and all processors. They take turns, and the best
of all rounds counts.

- XPU, TensorFlow and JAX run Keras Hub's `generate`, after Keras's `quantize` for fewer bits. llama.cpp has its own
  formats: F32, Q8_0 and Q4_0. A dash is one that is not installed, or whose tokens are others.
- **limit** is what memory allows: the speed at which a product of one row reads, divided by the bytes of Keras's
  weights.
- **best other / XPU** is the time of the fastest other contestant divided by the XPU's. Above 1 the XPU is first.
"""
LAYERS = """Milliseconds of a call of one dense layer on the XPU, the best of all rounds. Its input is as wide as its
output. In int8 the layer also scales the rows of its input to 8 bits.
"""
NETWORKS = """Milliseconds of a call on one image in 8 bits, the best of all rounds. On the XPU the model has
TensorFlow's fake quantization, as one that was trained for 8 bits has. "LiteRT, weights" has weights of 8 bits alone,
the others have such activations, too. A dash is one whose result differs by more than a tenth.
"""
SCALES_TEXT = "Milliseconds of a step, measured as in the contest, by the size of a model or of its data.\n"
VARIANTS_TEXT = """How many times as long a step takes without one [fusion pass](glossary.md#passes), without direct
calls, without clusters, or with one thread.
"""


def main() -> int:
    parts = {"contest": Race.contest, "inference": Race.inference, "generation": Race.generation}
    parts |= {"scales": Race.scales, "variants": Race.variants}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contest", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], metavar="PART", help=f"of {', '.join(parts)}; all")
    parser.add_argument("--workloads", help="of the contest, with semicolons between; default: all")
    parser.add_argument("--models", help="of the part inference, with semicolons between; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="the contest of a few workloads and rounds, under 5 minutes"
    )
    parser.add_argument("--against", help="contestants or engines, with semicolons between; default: all")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md, plots and benchmarks/results")
    options = parser.parse_args()
    workloads = options.workloads.split(";") if options.workloads else list(QUICK if options.quick else WORKLOADS)
    contestants = ["TensorFlow", "JAX"] if options.quick else [name for name in CONTESTANTS if name != XPU]
    contestants = [XPU, *(options.against.split(";") if options.against else contestants)]
    deployed = options.models.split(";") if options.models else list(inference_models.MODELS)
    rivals = [name for name in options.against.split(";") if name in engines.ENGINES] if options.against else []
    rivals = [XPU, *(rivals or [name for name in engines.ENGINES if name != XPU])]
    generators = [name for name in generation.GENERATORS if not options.against or name in options.against.split(";")]
    generators = [XPU, *(name for name in generators or generation.GENERATORS if name != XPU)]
    elsewhere = {*engines.ENGINES, *generation.GENERATORS} - {*CONTESTANTS}
    contestants = [name for name in contestants if name not in elsewhere]
    for given, known in ((workloads, WORKLOADS), (contestants, CONTESTANTS), (deployed, inference_models.MODELS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"there is no {unknown[0]!r}; expected some of: {'; '.join(known)}")
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    race = Race(workloads, contestants, deployed, rivals, generators, rounds, options.write)
    for part in options.parts or (["contest"] if options.quick else parts):
        parts[part](race)
    return 0


if __name__ == "__main__":
    sys.exit(main())
