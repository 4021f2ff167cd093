"""The contest of generation: all contestants say the same, and one that says something else has no time."""

import importlib.util
import typing

import numpy as np
import pytest

from benchmarks import document, generation, generators, quantized
from benchmarks.generation import Generation
from benchmarks.race import XPU, Row
from tests.support.requirements import need

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

SIZE = {"vocabulary_size": 96, "num_layers": 2, "num_heads": 2, "hidden_dim": 64, "intermediate_dim": 128}
PLAN = generators.Plan(SIZE, prompt=6, new=10)


def some_models():
    won = Generation("GPT-2, float32", {"XPU": [0.5, 0.25], "JAX": [1.0, 4.0]}, {}, {"llama.cpp": "missing"}, limit=8.0)
    lost = Generation("GPT-2, int8", {"XPU": [0.2], "llama.cpp": [0.5, 0.1]}, {}, {}, limit=10.0)
    return [won, lost]


def test_the_best_round_counts():
    lines = generation.table(some_models()).splitlines()
    assert lines[0] == "| weights | XPU | JAX | llama.cpp | limit | XPU / limit | best other / XPU |"
    assert lines[2:] == ["| float32 | 4 | 1 | - | 8 | 50% | 4.00 |", "| int8 | 5 | - | 10 | 10 | 50% | 0.50 |"]
    layer = Row("Dense 1024, 32 rows", {"XPU": [0.002, 0.001], "float32": [0.003, 0.009]}, {}, {})
    assert generation.layers_table([layer]).splitlines()[2] == "| Dense 1024, 32 rows | 3 | 1 | 3.00 |"


def test_the_page_has_the_section():
    rows = document.rows_of("generation")
    measured = [row.workload for row in rows if row.workload.startswith("GPT-2")]
    assert measured == [f"GPT-2, {weights}" for weights in generators.WEIGHTS]
    section = document.sections(document.PATH.read_text())["generation"]
    for row in rows:
        assert f"| {row.workload.removeprefix('GPT-2, ')} |" in section
    one = [Row("MLP", {"XPU": [1.0], "JAX": [2.0]}, {}, {})]
    assert "(#generation)" in document.head(one, generation=True)
    assert "(#generation)" not in document.head(one)


def test_networks_in_8_bits():
    row = Row("ResNet50, 1", {"XPU": [0.02, 0.01], "LiteRT": [0.005]}, {}, {"OpenVINO": "no nncf"})
    lines = quantized.table([row]).splitlines()
    assert lines[0].startswith("| model, batch | XPU, int8 | LiteRT, weights, int8 | LiteRT, int8 | OpenVINO, int8 |")
    assert lines[2] == "| ResNet50, 1 | 10 | - | 5 | - | 0.50 |"


def test_other_tokens_are_wrong():
    said = {"XPU": [1, 2, 3, 4, 5, 9], "JAX": [1, 2, 3, 4, 5, 7], "TensorFlow": [1, 2, 3, 4, 6], "llama.cpp": [8] * 5}
    assert set(generation.wrong(said, "int8")) == {"TensorFlow", "llama.cpp"}
    assert set(generation.wrong(said, "int4")) == {"TensorFlow"}, "llama.cpp rounds in its own way"
    assert generation.wrong({}, "float32") == {}


class Generator:
    """A contestant that takes `seconds` for a token and says `word`; None: it fails."""

    made: typing.ClassVar[dict[str, tuple[float, int | None]]] = {}

    def __init__(self, contestant, *_):
        self.seconds, self.word = self.made[contestant]

    def answer(self):
        if self.word is None:
            raise RuntimeError("No module named 'llama_cpp'")
        return {"tokens": [self.word] * 9, "bytes": 100}

    def turn(self, what=""):
        return {"bandwidth": 2000.0} if what else {"seconds": self.seconds}

    def end(self):
        pass


def test_who_cannot_or_is_wrong_has_no_time(monkeypatch, tmp_path):
    monkeypatch.setattr(generation, "Generator", Generator)
    Generator.made = {"XPU": (0.1, 1), "TensorFlow": (0.2, 1), "JAX": (0.05, 2), "llama.cpp": (0.3, None)}
    row = generation.measure("int8", list(Generator.made), 2, tmp_path, PLAN)
    assert row.rounds == {"XPU": [0.1, 0.1], "TensorFlow": [0.2, 0.2]}
    assert row.failed == {
        "llama.cpp": "No module named 'llama_cpp'",
        "JAX": "its first tokens are [2, 2, 2, 2, 2], those of most [1, 1, 1, 1, 1]",
    }
    assert row.limit == 20.0


def test_without_a_file_llama_cpp_cannot(monkeypatch):
    monkeypatch.setattr(generation, "Generator", Generator)
    monkeypatch.setattr(generation, "export", lambda *_: "ModuleNotFoundError: No module named 'gguf'")
    Generator.made = {"XPU": (0.1, 1), "JAX": (0.2, 1)}
    rows = list(generation.models(["XPU", "JAX", "llama.cpp"], 1, PLAN))
    assert [list(row.rounds) for row in rows] == [["XPU", "JAX"]] * 3
    assert rows[2].failed == {"llama.cpp": "ModuleNotFoundError: No module named 'gguf'"}


@pytest.mark.slow
def test_llama_cpp_gets_the_weights_as_it_wants_them(tmp_path):
    """The rows of its matrices are outputs; few numbers stay floats."""
    need("keras_hub", file="requirements-models.txt")
    need("gguf", file="requirements-engines.txt")
    import gguf

    assert generation.export(PLAN, tmp_path) == ""
    values = {}
    for weights, name in generators.WEIGHTS.items():
        reader = gguf.GGUFReader(generators.file_of(tmp_path, weights))
        named = {tensor.name: tensor for tensor in reader.tensors}
        assert {tensor.tensor_type.name for tensor in named.values()} == {"F32", name}
        values[weights] = {n: gguf.quants.dequantize(t.data, t.tensor_type) for n, t in named.items()}
        assert named["position_embd.weight"].tensor_type.name == "F32"
    floats = values["float32"]
    assert floats["token_embd.weight"].shape == (96, 64) and floats["position_embd.weight"].shape == (16, 64)
    assert floats["blk.1.attn_qkv.weight"].shape == (192, 64) and floats["blk.1.ffn_down.weight"].shape == (64, 128)
    for weights, error in (("int8", 0.01), ("int4", 0.15)):
        for name, value in floats.items():
            assert np.linalg.norm(values[weights][name] - value) <= error * np.linalg.norm(value), name


@pytest.mark.slow
def test_contestants_say_the_same():
    """Each in its own process; with llama.cpp where it is installed."""
    need("keras_hub", file="requirements-models.txt")
    need("gguf", file="requirements-engines.txt")
    llama = ["llama.cpp"] if importlib.util.find_spec("llama_cpp") else []
    rows = list(generation.models([XPU, "TensorFlow", *llama], 1, PLAN))
    assert [(list(row.rounds), row.failed) for row in rows] == [([XPU, "TensorFlow", *llama], {})] * 3
    assert rows[0].bytes[XPU] > rows[1].bytes[XPU] > rows[2].bytes[XPU]
    assert all(row.limit > 0 and min(row.rounds[XPU]) > 0 for row in rows)


def test_a_layer_with_a_wrong_result_is_refused(monkeypatch, xpu_device):
    generators.dense("int8", 64, 4)()
    monkeypatch.setattr(generators, "ERROR", 1e-4)
    generators.dense("float32", 64, 4)()
    with pytest.raises(RuntimeError, match=r"a layer of 64 for 4 rows has an error of 0\.0.*expected at most 0\.0001"):
        generators.dense("int8", 64, 4)


@pytest.mark.slow
def test_layers_take_turns(monkeypatch):
    monkeypatch.setattr(generation, "LAYERS", [(64, 4), (32, 2)])
    rows = list(generation.layers(1, PLAN))
    assert [row.workload for row in rows] == ["Dense 64, 4 rows", "Dense 32, 2 rows"]
    assert all(set(row.rounds) == {XPU, "float32"} and not row.failed for row in rows)
