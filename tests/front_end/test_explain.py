"""Which op has a kernel: `explain`, the command `ops`, and what docs/front-end.md shows of them and of traces."""

import collections
import doctest
import json
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_xpu
from tensorflow_xpu import XPUError, _kernels, _trace, ops
from tests.support.installed import ROOT
from tests.support.processes import run
from tests.sweep.registrations import all_registrations

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def test_explanations_agree_with_the_registry(xpu_device):
    """Each type that is registered is found, whatever the op's other types; host memory where all arguments are."""
    wrong = []
    for registration in all_registrations():
        if registration.label:
            continue
        numbers = {a: (t.as_datatype_enum,) for a, t in registration.types}
        kernel = _kernels.find(registration.op, numbers)
        if kernel is None or set(registration.host_args) != kernel.host_args:
            wrong.append(str(registration))
    assert wrong == []


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("MatMul", "float64", "MatMul of float64 runs on the XPU"),
        ("AddV2", np.int32, "AddV2 of int32 runs in host memory: int32, which TensorFlow keeps in host memory"),
        ("AddV2", tf.string, "AddV2 of string cannot"),
        ("StringLength", None, "StringLength runs on the CPU: works on strings, which are in host memory"),
        ("MatrixSquareRoot", tf.float32, "MatrixSquareRoot of float32 runs on the CPU: no kernel for XPU"),
        ("MaxPool", tf.int64, "MaxPool of int64 runs on the CPU: no kernel for T=int64, only for bfloat16"),
    ],
)
def test_explain(op, dtype, expected, xpu_device):
    if "cannot" in expected:
        with pytest.raises(XPUError, match="cannot be of string on any device: its T is one of bfloat16"):
            tensorflow_xpu.explain(op, dtype)
        return
    explanation = tensorflow_xpu.explain(op, dtype)
    assert str(explanation).splitlines()[0].startswith(expected)
    assert explanation.on_xpu == ("XPU" in expected.partition(":")[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Matmul",), "no op 'Matmul'; did you mean MatMul"),
        (("qqqqqq",), "no op 'qqqqqq'; dir"),
        ((None,), "no op None"),
        (("MatMul", "float31"), "'float31' is no type"),
        (("NoOp", "float32"), "NoOp has no type to choose"),
    ],
)
def test_bad_questions(arguments, message, xpu_device):
    with pytest.raises(XPUError, match=message):
        tensorflow_xpu.explain(*arguments)


def test_the_command_lists_what_is_registered(xpu_device):
    registered = collections.Counter(r.op for r in all_registrations())
    listed = {op.name: op for op in ops.list_ops()}
    assert {op: listed[op].family for op in registered if listed[op].family not in ops.FAMILIES} == {}
    own = [op for op in listed.values() if op.family == ops.EVERY_DEVICE]
    assert {op.name for op in own} == set(listed) - set(registered)
    assert listed["Identity"] in own
    doubles = {r.op for r in all_registrations() if tf.float64 in r.type_map.values()}
    assert {op.name for op in ops.list_ops(dtype="float64") if op.name in registered} >= doubles
    assert {op.name for op in ops.list_ops(["matmul"])} >= {"MatMul", "BatchMatMulV2", "SparseTensorDenseMatMul"}
    assert [op.name for op in ops.list_ops(["mat*l"], family="nn")] == ["MatMul"]
    assert listed["Sum"].host_memory == ["reduction_indices"]
    assert listed["Sum"].host_types["T"] == ["int32"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["cholesky", "--type", "float64"], 0, "1 ops, "),
        (["nosuchop"], 1, "0 ops, 0 kernels"),
        (["--type", "float31"], 2, "'float31' is no type"),
        (["--family", "maths"], 2, "no family 'maths': did you mean 'math'?"),
    ],
)
def test_the_command(arguments, code, words, capsys, xpu_device):
    assert ops.main(arguments) == code
    printed = capsys.readouterr()
    assert words in printed.out + printed.err
    assert bool(printed.err) == (code == 2)


def test_the_command_as_json(capsys, xpu_device):
    assert ops.main(["cholesky", "--json"]) == 0
    by_name = {op["name"]: op for op in json.loads(capsys.readouterr().out)}
    assert by_name["Cholesky"]["types"] == {"T": ["complex128", "complex64", "float32", "float64"]}
    assert by_name["Cholesky"]["family"] == "linalg"


@pytest.mark.parametrize("module", [_kernels, _trace, ops])
def test_the_examples_in_docstrings(module, xpu_device):
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


SECTION = "## What ran where"


def examples(language):
    """The section's blocks in a language, each with the block of output behind it, or ""."""
    text = (ROOT / "docs" / "front-end.md").read_text()
    section = text[text.index(SECTION) :].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```\n(?:\n```text\n(.*?)```)?", section, re.DOTALL)


@pytest.mark.of_hooks("clusters")
def test_the_documentation_shows_what_is_printed(tmp_path):
    found_examples = examples("python")
    assert len(found_examples) == 5
    script, marker = tmp_path / "script.py", "--- end of an example"
    script.write_text("\n".join(f"{code}\nprint({marker!r})" for code, _ in found_examples))
    outcome = run(script)
    assert outcome.returncode == 0, outcome
    for (code, expected), printed in zip(found_examples, outcome.stdout.split(marker + "\n")):
        assert not expected or printed == expected, code


def test_the_documentation_shows_what_the_command_prints(capsys, xpu_device):
    ((command, expected),) = examples("sh")
    *start, ops_command = shlex.split(command)[:4]
    assert (start, ops_command) == (["python", "-m", "tensorflow_xpu"], "ops")
    assert ops.main(shlex.split(command)[4:]) == 0
    assert capsys.readouterr().out == expected
