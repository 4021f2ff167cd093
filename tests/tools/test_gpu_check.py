"""tools/gpu_check.py: stages run by themselves, fail by themselves, and what they saw becomes tables."""

import json
import re
import sys

import pytest

from benchmarks import gpu_page
from tests.support.installed import ROOT
from tests.tools.test_run_tests import load

gpu_check = load("gpu_check")
pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

# A test program as its output tells it, by the name of the program.
PROGRAM = """#!/bin/sh
case $0 in
  *matmul_test) echo "XPU_HOST: 7 cases, 1 wrong, 2 not supported"; echo "[  FAILED  ] MatMul.Sizes (3 ms)"; exit 1;;
  *sort_test) sleep 100;;
  *rates) printf 'a processor\\n\\n| what | time | rate |\\n|---|---|---|\\n'
    echo '| MatMul 4096 | 2.5 ms | 54.9 TFLOP/s |'; echo '| odd | | no kernel |';;
  *) echo "XPU_HOST: 5 cases, 0 wrong, 0 not supported";;
esac
"""
# An interpreter whose modules are what they say.
PEER = f"""#!{sys.executable}
import json, os, sys
if os.environ["KERAS_BACKEND"] == "jax":
    row = {{"model": "a model", "type": "float32", "size": "small", "batch": 8}}
    print(json.dumps(row | {{"device": "gpu:0", "seconds": [0.004, 0.002, 0.003]}}))
    print(json.dumps(row | {{"type": "bfloat16", "failed": "no such type"}}))
else:
    sys.exit("no torch")
"""


def written(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path):
    for name in ("matmul_test", "sort_test", "scan_test", "other_test", "rates"):
        written(tmp_path / name, PROGRAM)
    written(tmp_path / "peer", PEER)
    return tmp_path


def run(folder, *arguments, seconds=60):
    """The exit status, and the report."""
    target = folder / "report.json"
    options = ["--subdevice", "XPU_HOST", "--small", "--write", str(target), "--programs", str(folder)]
    status = gpu_check.main([*options, "--seconds", str(seconds), *arguments])
    return status, json.loads(target.read_text())


def test_programs_and_rates(folder, monkeypatch, capsys):
    monkeypatch.setitem(gpu_check.STAGES, "primitives", gpu_check.Stage(gpu_check.primitives, 3))
    status, report = run(folder, "--only", "primitives", "--only", "rates", "--only", "sanitizer")
    stages, parts = report["stages"], report["stages"]["primitives"]["parts"]
    assert status == 1 and set(stages) == {"sanitizer", "primitives", "rates"}
    assert {name: part["status"] for name, part in parts.items()} == {
        "matmul_test": "failed",
        "scan_test": "passed",
        "sort_test": "out of time",
    }
    assert parts["matmul_test"]["failed"] == ["MatMul.Sizes"] and parts["matmul_test"]["not supported"] == 2
    assert stages["primitives"]["cases"] == 12 and stages["primitives"]["wrong"] == 1
    assert stages["sanitizer"]["status"] == "left out"
    assert stages["rates"]["rates"] == [{"what": "MatMul 4096", "ms": 2.5, "rate": 54.9, "unit": "TFLOP/s"}]
    said = capsys.readouterr().out
    assert "primitives: failed in" in said and "matmul_test failed" in said and "sort_test out of time" in said
    page = gpu_page.text_of(report)
    assert "| MatMul 4096 | 2.5 ms | 54.9 TFLOP/s |" in page
    assert "| primitives | failed; 12 cases; 1 wrong; matmul_test failed; sort_test out of time | 3 |" in page


def test_a_stage_that_breaks_stops_no_other(folder, monkeypatch):
    def broken(check, until):
        raise ValueError("nothing works")

    monkeypatch.setitem(gpu_check.STAGES, "sweep", gpu_check.Stage(broken, 10))
    status, report = run(folder, "--only", "sweep", "--only", "rates")
    assert status == 1 and report["stages"]["sweep"]["why"] == "ValueError: nothing works"
    assert report["stages"]["rates"]["status"] == "passed"
    status, report = run(folder, "--only", "rates", seconds=1)
    assert status == 0 and report["stages"]["rates"] == {"status": "left out", "why": "there was no time", "took": 0.0}


def test_models_have_a_row_for_each_contestant(folder, monkeypatch):
    own = json.dumps({"model": "a model", "type": "float32", "size": "small", "batch": 8, "seconds": [0.002]})
    original = gpu_check.peers_of

    def peers_of(check):
        peers = original(check)
        return peers | {"XPU": ([sys.executable, "-c", f"print({own!r})"], peers["XPU"][1])}

    monkeypatch.setattr(gpu_check, "peers_of", peers_of)
    status, report = run(folder, "--only", "models", "--peer-python", str(folder / "peer"))
    parts = report["stages"]["models"]["parts"]
    assert status == 1 and "no torch" in parts["PyTorch, compiled"]["output"] and parts["XPU"]["status"] == "passed"
    assert gpu_page.models(report).splitlines() == [
        "| model | type | XPU, ms | JAX, ms | PyTorch, compiled, ms | PyTorch, ms | examples/s | best other / XPU |",
        "|---|---|---|---|---|---|---|---|",
        "| a model: small | float32 | 2 | 3 | - | - | 4,000 | 1.50 |",
        "| a model: small | bfloat16 | - | - | - | - | - | - |",
    ]


def test_tables_are_put_into_the_page(folder, monkeypatch):
    _, report = run(folder, "--only", "rates")
    page, data = folder / "cuda.md", folder / "gpu.json"
    page.write_text(gpu_page.PAGE.read_text())
    monkeypatch.setattr(gpu_page, "PAGE", page)
    monkeypatch.setattr(gpu_page, "DATA", data)
    monkeypatch.setattr(sys, "argv", ["gpu_page", str(folder / "report.json")])
    gpu_page.main()
    assert json.loads(data.read_text()) == report
    assert gpu_page.text_of(report) in page.read_text() and "## What is missing" in page.read_text()


def test_what_the_page_says_was_measured():
    """The tables are those of the last report, if there is one."""
    if gpu_page.DATA.exists():
        assert gpu_page.text_of(json.loads(gpu_page.DATA.read_text())) in gpu_page.PAGE.read_text()


@pytest.mark.slow
def test_it_runs_on_the_host(tmp_path):
    """All that needs no test programs, in small sizes."""
    status, report = run(
        tmp_path, *(f"--only={name}" for name in ("doctor", "sweep", "conformance", "models")), seconds=400
    )
    stages = report["stages"]
    assert status == 0, report
    assert stages["sweep"]["passed"] > 10 and " 0 failed" in stages["conformance"]["summary"]
    rows = stages["models"]["parts"]["XPU"]["rows"]
    assert len(rows) == 8 and all(row["device"].startswith("XPU") and min(row["seconds"]) > 0 for row in rows)


def test_the_network_is_that_of_the_demo():
    from benchmarks.gpu_models import digits_network

    source = (ROOT / "examples/digits_cnn.py").read_text()
    layers = [type(layer).__name__ for layer in digits_network()[0].layers]
    assert layers == [name for name in re.findall(r"layers\.(\w+)\(", source) if name != "Input"]
