"""The contest of inference: every engine runs what Keras exports for it, and a wrong result is not a time."""

import typing

import numpy as np
import pytest

from benchmarks import engines, inference
from benchmarks.roofline import Roof
from tests.support.requirements import need

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def deployment(**times):
    names = {"OnnxRuntime": "ONNX Runtime"}
    rounds = {names.get(name, name): values for name, values in times.items()}
    return inference.Deployment(
        "tabular MLP, 1",
        rounds,
        dict.fromkeys(rounds, 3.0),
        {},
        slow=dict.fromkeys(rounds, 9.0),
        imported=dict.fromkeys(rounds, 2.5),
        bytes=dict.fromkeys(rounds, 3 << 20),
    )


def test_the_best_engine_is_beaten_or_not():
    rows = [deployment(XPU=[1.0, 1.0], LiteRT=[2.0, 2.0], JAX=[4.0, 4.0]), deployment(XPU=[1.0], OnnxRuntime=[0.5])]
    rows[0].commands = [(1e9, 10.0)]
    lines = inference.table(rows, Roof(flops=2e9, bfloat16_flops=1e10, memory=1e8, cached=1e9)).splitlines()
    assert lines[0].startswith("| model, batch | XPU | ONNX Runtime | LiteRT | JAX | XPU, 99th"), "who took part"
    assert lines[2].startswith("| tabular MLP, 1 | 1e+03 | - | 2e+03 | 4e+03 |")
    assert lines[2].endswith("| 9e+03 | 2.00 | 50% |")
    assert lines[3].endswith("| 9e+03 | 0.50 | - |")
    assert lines[-1].endswith("| 1.00 | |")
    costs = inference.costs_table(rows).splitlines()
    assert costs[2].startswith("| tabular MLP, 1 | 0.5 s, 3 | - | 0.5 s, 3 | 0.5 s, 3 |")
    rows[0].failed["OpenVINO"] = "it cannot load the model"
    assert "| XPU | OpenVINO | ONNX Runtime |" in inference.table(rows), "one that could not took part, too"


class Server:
    """An engine that takes `seconds` for a call and gives `result`; None: it fails."""

    made: typing.ClassVar[dict[str, tuple[float, float | None]]] = {}

    def __init__(self, engine, *_):
        self.seconds, self.result = self.made[engine]

    def ready(self):
        if self.result is None:
            raise RuntimeError("it cannot load the model")
        return {"loss": self.result, "imported": 1.0, "whole": 2.0}

    def turn(self, what=""):
        return {"events": []} if what else {"times": [self.seconds] * 3 + [10 * self.seconds], "bytes": 5}

    def end(self):
        pass


def test_a_wrong_result_is_no_time(monkeypatch, tmp_path):
    monkeypatch.setattr(inference, "Server", Server)
    monkeypatch.setattr(inference, "export", lambda *_: {"onnx": "ValueError: no such op"})
    Server.made = {"XPU": (2.0, 1.0), "OpenVINO": (1.0, 1.05), "LiteRT": (4.0, 1.002), "JAX": (3.0, None)}
    row = inference.measure("tabular MLP", 1, ["XPU", "OpenVINO", "ONNX Runtime", "LiteRT", "JAX"], 2, tmp_path)
    assert row.rounds == {"XPU": [2.0, 2.0], "LiteRT": [4.0, 4.0]}
    assert row.failed == {
        "OpenVINO": "its result is 1.05, that of most 1.002",
        "ONNX Runtime": "ValueError: no such op",
        "JAX": "it cannot load the model",
    }
    assert row.best() == "LiteRT" and row.slow["LiteRT"] == pytest.approx(40.0)


def test_an_engine_that_fails_late_is_out(monkeypatch, tmp_path):
    class FailsLate(Server):
        turns = 0

        def turn(self, what=""):
            self.turns += 1
            if self.seconds == 1.0 and self.turns > 2:
                raise RuntimeError("out of strength")
            return super().turn(what)

    monkeypatch.setattr(inference, "Server", FailsLate)
    monkeypatch.setattr(inference, "export", lambda *_: {})
    Server.made = {"XPU": (2.0, 1.0), "LiteRT": (1.0, 1.0)}
    row = inference.measure("tabular MLP", 1, ["XPU", "LiteRT"], 2, tmp_path)
    assert row.rounds == {"XPU": [2.0, 2.0]}
    assert row.failed == {"LiteRT": "out of strength"}
    assert list(row.slow) == ["XPU"]


@pytest.mark.slow
def test_engines_run_what_keras_exports(tmp_path):
    """Each of them, in its own process: the same result of the same weights, and as many calls as fit into a turn."""
    need("openvino", "onnxruntime", "tf2onnx", "ai_edge_litert", file="requirements-engines.txt")
    assert inference.export("tabular MLP", 8, tmp_path) == {}
    with np.load(tmp_path / "arguments.npz") as file:
        assert [file[name].shape for name in file.files] == [(8, 32)]
    results = {}
    for engine in ("XPU", "TensorFlow", "OpenVINO", "ONNX Runtime", "LiteRT"):
        server = inference.Server(engine, "tabular MLP", 8, tmp_path)
        try:
            first = server.ready()
            seen = server.turn()
        finally:
            server.end()
        results[engine] = first["loss"]
        assert first["whole"] > first["imported"] > 0 and seen["bytes"] > 0
        assert 3 <= len(seen["times"]) <= engines.MOST_CALLS and min(seen["times"]) > 0
    np.testing.assert_allclose(list(results.values()), results["TensorFlow"], rtol=1e-4)
    assert 0.5 < results["TensorFlow"] < 1  # of two probabilities
