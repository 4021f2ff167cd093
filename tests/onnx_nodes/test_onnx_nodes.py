"""Compares ops on the XPU with ONNX's stored results, eagerly and in functions that are called twice."""

import re

import onnx
import pytest

from tests.onnx_nodes import cases, exceptions
from tests.onnx_nodes.interpreter import OPERATORS, NotKnownError, normal
from tests.support.installed import ROOT
from tests.support.processes import run as run_python
from tests.sweep.runner import hard_placement

pytestmark = [pytest.mark.slow, pytest.mark.host_only]

ABSENT = exceptions.absent()
SCHEMAS = {(normal(schema.domain), schema.name): schema for schema in onnx.defs.get_all_schemas()}
NAMES = sorted({name for _, name in OPERATORS} | {name for _, name in ABSENT}) + list(cases.STORED)
UNLIKE = re.compile("|".join(exceptions.patterns(exceptions.UNLIKE)))
CPU_ONLY = re.compile("|".join(exceptions.patterns(exceptions.CPU_ONLY)))
EAGER_ONLY = re.compile("|".join(exceptions.patterns(exceptions.EAGER_ONLY)))


def cases_of(name):
    """The cases whose operators are all in the table."""
    return [case for case in cases.load().values() if case.of == name and case.operators <= OPERATORS.keys()]


def difference_of(case, run, device):
    """Describes a difference or an exception; empty if the case is right."""
    try:
        results = run(case, device)
        for call, found in enumerate(results if run is cases.in_function else [results]):
            if said := cases.differences(case, found, exceptions.ROUNDED.get(case.name, 0.0)):
                return f"{case.name}, call {call}: {said}"
    except NotKnownError:
        return "" if EAGER_ONLY.fullmatch(case.name) else f"{case.name}: its graph cannot be made"
    except Exception as error:  # of any type: the other cases still run
        return f"{case.name}: {type(error).__name__}: {str(error)[:500]}"
    return ""


def test_every_operator_is_in_the_table_or_has_a_reason():
    assert SCHEMAS.keys() == OPERATORS.keys() | ABSENT.keys()
    assert not OPERATORS.keys() & ABSENT.keys()
    for key, why in ABSENT.items():
        schema = SCHEMAS[key]
        defined = schema.has_function or schema.has_context_dependent_function
        assert defined == (why == exceptions.DEFINED), key


def test_every_exception_is_of_a_case():
    names = [case.name for case in cases.load().values()]
    for table in (exceptions.UNLIKE, exceptions.CPU_ONLY, exceptions.EAGER_ONLY):
        for pattern in exceptions.patterns(table):
            assert any(re.fullmatch(pattern, name) for name in names), pattern
    assert set(exceptions.ROUNDED) | set(exceptions.WRONG_ON_CPU) <= set(names)
    assert {case.of for case in cases.load().values()} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_on_the_cpu(name):
    """The control: a case is right on the CPU unless exceptions.py lists it."""
    wrong = []
    for case in cases_of(name):
        said = difference_of(case, cases.eagerly, "/cpu:0")
        if bool(said) != bool(UNLIKE.fullmatch(case.name)):
            wrong.append(said or f"{case.name} is right, and has an exception")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("run", [cases.eagerly, cases.in_function])
def test_on_the_xpu(xpu_device, run, name):
    """Soft placement is off: an op without a kernel raises, unless the table itself places it on the host."""
    compared = [c for c in cases_of(name) if not UNLIKE.fullmatch(c.name) and not CPU_ONLY.fullmatch(c.name)]
    with hard_placement():
        wrong = [said for case in compared if (said := difference_of(case, run, xpu_device))]
    assert not wrong, "\n".join(wrong)


def test_wrong_results_are_seen(xpu_device, tmp_path):
    """The device gives results that are wrong in one element."""
    names = ["Abs", "Add", "Concat", "Conv", "Gather", "LSTM", "MatMul", "ReduceSum", "Softmax", "TopK", "Where"]
    file = tmp_path / "program.py"
    file.write_text(
        "from tests.onnx_nodes.test_onnx_nodes import *\n"
        f"for name in {names}:\n"
        "    for run in (cases.eagerly, cases.in_function):\n"
        "        if not any(difference_of(case, run, '/xpu:0') for case in cases_of(name)): print(name, run.__name__)\n"
    )
    environment = {"TF_XPU_FAULT": "command:result=one", "PYTHONPATH": "."}
    outcome = run_python(file, environment=environment, cwd=ROOT)
    assert outcome.returncode == 0 and not outcome.stdout.strip(), outcome
