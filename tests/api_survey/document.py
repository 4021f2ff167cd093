"""docs/models.md and docs/data/models.tsv: which layers, functions and models run whole on the XPU.

python -m tests.api_survey.document            examines everything in tests/api_survey/cases and writes both; minutes,
                                               in two processes
python -m tests.api_survey.document --render   writes the page anew from the data
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import csv
import dataclasses
import multiprocessing
import pathlib
from collections.abc import Iterable, Sequence

from tests.api_survey.cases import ITEMS
from tests.api_survey.reasons import NOT_COMPUTING, why
from tests.training.test_applications import MODELS

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PATH, DATA = DOCS / "models.md", DOCS / "data" / "models.tsv"
COLUMNS = ("group", "expression", "ops on the CPU", "error")

# How many items a process is given at a time.
CHUNK = 12


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the data: an item, the ops of it that ran on the CPU, and how it failed."""

    group: str
    text: str
    on_cpu: tuple[str, ...] = ()
    error: str = ""

    @property
    def computing(self) -> list[str]:
        """The ops on the CPU that compute something."""
        return [op for op in self.on_cpu if op not in NOT_COMPUTING]

    @property
    def is_whole(self) -> bool:
        return not self.computing and not self.error


def examined(numbers: list[int]) -> list[Row]:
    """In a process of its own: what became of the items of these numbers."""
    import tensorflow as tf

    from tests.api_survey.runner import examine

    tf.get_logger().setLevel("ERROR")
    found = []
    for number in numbers:
        item = ITEMS[number]
        try:
            outcome = examine(item)
            found.append(Row(item.group, item.text, tuple(sorted(outcome.on_cpu)), " ".join(outcome.error.split())))
        except Exception as exception:  # a mistake of the tables, which main() prints
            error = f"on the CPU: {type(exception).__name__}: {str(exception)[-300:]}"
            found.append(Row(item.group, item.text, (), " ".join(error.split())))
    return found


def examine_all(processes: int = 2) -> list[Row]:
    """The result of each of ITEMS."""
    chunks = [list(range(at, min(at + CHUNK, len(ITEMS)))) for at in range(0, len(ITEMS), CHUNK)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        return [row for chunk in pool.map(examined, chunks) for row in chunk]


def write_data(rows: Iterable[Row], path: pathlib.Path = DATA) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((row.group, row.text, ", ".join(row.on_cpu), row.error) for row in rows)


def read_data(path: pathlib.Path = DATA) -> list[Row]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    if tuple(header) != COLUMNS:
        raise ValueError(f"{path} has the columns {header}; expected {list(COLUMNS)}")
    return [Row(group, text, tuple(ops.split(", ")) if ops else (), error) for group, text, ops, error in rows]


TEXT = """# Models

{whole} of {all} layers, functions and models run whole on the XPU: no op that computes runs on the CPU. This page lists
the groups and what does not run whole. [data/models.tsv](data/models.tsv) has every expression.

`python -m tests.api_survey.document` writes both. It runs each expression on `/xpu:0` and on `/cpu:0`, forward and
backward. Backward means the gradients of all arguments and variables, where TensorFlow has gradients. Results differ
by at most a ten-thousandth of their largest value, those of whole models by at most two thousandths. TensorFlow itself
reports which ops ran on the CPU.

`tests/training/test_applications.py` trains the {applications} models of `keras.applications` for one step. All their
ops that compute run on the XPU, and the loss is the CPU's.

| group | whole on the XPU | of |
|---|---|---|
{groups}

## Not whole

The ops in the third column run on the CPU, and TensorFlow copies their arguments and results. Most of them have no
kernel for any device but the CPU.

| group | expression | on the CPU | why |
|---|---|---|---|
{parts}

`IteratorGetNext` computes nothing and does not count: the input pipeline prepares batches on the CPU.
"""


def render(rows: Sequence[Row]) -> str:
    """The page's text."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    return TEXT.format(
        whole=sum(row.is_whole for row in rows),
        all=len(rows),
        applications=len(MODELS),
        groups="\n".join(f"| {name} | {sum(r.is_whole for r in rs)} | {len(rs)} |" for name, rs in groups.items()),
        parts="\n".join(not_whole(row) for row in rows if not row.is_whole),
    )


def not_whole(row: Row) -> str:
    """Its line in the table of what is not whole."""
    ops = ", ".join(row.computing) or "-"
    reasons = f"fails: {row.error[:100]}" if row.error else "; ".join(dict.fromkeys(map(why, row.computing)))
    text = row.text.replace("|", "\\|")
    return f"| {row.group} | `{text}` | {ops} | {reasons} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="only the page, from the data")
    if not parser.parse_args().render:
        write_data(examine_all())
    results = read_data()
    PATH.write_text(render(results))
    for result in results:
        if result.error:
            print(f"{result.group}: {result.text}: {result.error}")
    print(f"wrote {PATH}")
