"""Everything in the tables runs on the XPU as on the CPU, and on the CPU only what reasons.py names."""

import keras
import pytest
import tensorflow as tf

from tests.api_survey import document
from tests.api_survey.cases import ITEMS, keras_layers, keras_ops, keras_training, tf_functions
from tests.api_survey.items import Item
from tests.api_survey.reasons import BESIDE, ON_CPU
from tests.api_survey.runner import examine, registered

# The parts of most programs; the others are slow for all of them together.
FAST = (
    "keras.layers: Dense(4, activation='relu')",
    "keras.layers: Conv2D(4, 3, strides=2, padding='same')",
    "keras.layers: LSTM(4)",
    "keras.layers: MultiHeadAttention(2, 3, dropout=0.1)",
    "keras.layers: BatchNormalization()",
    "keras.layers: Embedding(10, 4)",
    "keras.losses: SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)(labels, x)",
    "keras.metrics: SparseCategoricalAccuracy()",
    "keras.optimizers: Adam(0.1)",
    "keras.ops: scan(lambda carry, a: (carry + a, carry * a), v, x)",
    "keras.ops: slice_update(x, (1, 2), y[:2, :3])",
    "keras.random: dropout(x, 0.5, seed=seed)",
    "tf.math: unsorted_segment_mean(x, ids, 4)",
)
CHUNK = 12
SLOW = [ITEMS[at : at + CHUNK] for at in range(0, len(ITEMS), CHUNK)]


def check(items):
    problems = []
    for item in items:
        outcome = examine(item)
        if outcome.error:
            problems.append(f"{item.name}: {outcome.error}")
        if unexplained := outcome.on_cpu - set(ON_CPU):
            problems.append(f"{item.name}: on the CPU ran {sorted(unexplained)}")
    assert problems == []


@pytest.mark.parametrize("name", FAST)
def test_what_most_programs_have(name, xpu_device):
    check([next(item for item in ITEMS if item.name == name)])


@pytest.mark.host_only
@pytest.mark.slow
@pytest.mark.parametrize("items", SLOW, ids=[items[0].name for items in SLOW])
def test_all(items, xpu_device):
    check(items)


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("group", "module", "skipped", "is_wanted"),
    [
        ("keras.layers", keras.layers, keras_layers.SKIPPED, str.istitle),
        ("keras.losses", keras.losses, keras_training.LOSSES_SKIPPED, str.istitle),
        ("keras.metrics", keras.metrics, keras_training.METRICS_SKIPPED, str.istitle),
        ("keras.optimizers", keras.optimizers, keras_training.OPTIMIZERS_SKIPPED, str.istitle),
        ("keras.ops", keras.ops, keras_ops.SKIPPED, str.islower),
        ("keras.random", keras.random, keras_ops.RANDOM_SKIPPED, str.islower),
        ("tf.nn", tf.nn, tf_functions.NN_SKIPPED, str.islower),
        ("tf.math", tf.math, tf_functions.MATH_SKIPPED, str.islower),
        ("tf.linalg", tf.linalg, {}, str.islower),
        ("tf.signal", tf.signal, tf_functions.SIGNAL_SKIPPED, str.islower),
        ("tf.image", tf.image, tf_functions.IMAGE_SKIPPED, str.islower),
        ("tf.sparse", tf.sparse, tf_functions.SPARSE_SKIPPED, str.islower),
    ],
)
def test_the_tables_are_complete(group, module, skipped, is_wanted):
    """Every public name is in an expression, or named as skipped; one object may have several names."""
    text = " ".join(item.text for item in ITEMS if item.group == group)
    names = [n for n in dir(module) if n[0] != "_" and callable(getattr(module, n)) and is_wanted(n[0])]
    covered = {id(getattr(module, n)) for n in names if f"{n}(" in text}
    assert [n for n in names if id(getattr(module, n)) not in covered and n not in skipped] == []


@pytest.mark.host_only
def test_no_reason_is_out_of_date(xpu_device):
    assert sorted((set(ON_CPU) - BESIDE) & registered()) == []


@pytest.mark.host_only
def test_the_page_is_what_the_data_says():
    """python -m tests.api_survey.document examines all items; with --render it writes the page from the data."""
    rows = document.read_data()
    assert [(row.group, row.text) for row in rows] == [(item.group, item.text) for item in ITEMS]
    assert {op for row in rows for op in row.on_cpu} <= set(ON_CPU)
    assert document.PATH.read_text() == document.render(rows)


def test_the_page_lists_what_is_not_whole(tmp_path):
    whole = document.Row("tf", "add(x, y)", ("IteratorGetNext",))
    parts = document.Row("tf.linalg", "eig(x | y)", ("Eig", "IteratorGetNext"))
    fails = document.Row("tf.nn", "pool(x)", (), "ValueError: no")
    document.write_data([whole, parts, fails], tmp_path / "data.tsv")
    assert document.read_data(tmp_path / "data.tsv") == [whole, parts, fails]
    page = document.render([whole, parts, fails])
    assert page.startswith("# Models\n\n1 of 3 ")
    assert "| tf | 1 | 1 |\n| tf.linalg | 0 | 1 |\n| tf.nn | 0 | 1 |\n" in page
    assert "| tf.linalg | `eig(x \\| y)` | Eig | TensorFlow has a CPU kernel only |\n" in page
    assert "| tf.nn | `pool(x)` | - | fails: ValueError: no |\n" in page
    assert "add(x, y)" not in page


def test_mistakes_are_found(xpu_device):
    def item(function, **options):
        return Item("test", "text", lambda: function, ("x",), **options)

    def on_the_cpu(x):
        with tf.device("/cpu:0"):
            return tf.atan(x)

    calls = []

    def different(x):
        calls.append(x)
        return x * (1 + 1e-3 * len(calls))

    def fails(x):
        if len(calls) > 3:
            raise ValueError("no")
        calls.append(x)
        return x

    assert examine(item(on_the_cpu, trains=False)).on_cpu == {"Atan"}
    assert "differs by 0.001" in examine(item(different)).error
    assert examine(item(different, tolerance=1e-2)).error == ""
    calls[:] = [0, 0, 0]
    assert examine(item(fails)).error == "ValueError: no"
