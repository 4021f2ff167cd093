"""tools/compile_kernels.py: it reports what does not compile, and its few sources have all parts of the others."""

import pytest

from tests.tools.test_run_tests import load

compile_kernels = load("compile_kernels")
RIGHT = 'extern "C" __global__ void run(float *x) { x[threadIdx.x] = 1; }'
WRONG = {
    "name": RIGHT.replace("threadIdx", "threadIndex"),
    "instruction": RIGHT.replace("x[", 'asm("no_such_instruction;"); x['),
    "memory": RIGHT.replace(
        "x[", "__shared__ float all[1 << 18]; all[threadIdx.x] = *x; __syncthreads(); *x = all[1]; x["
    ),
}

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def test_what_does_not_compile_is_reported(capsys):
    names = {RIGHT: "right_test", **{source: f"{name}_test" for name, source in WRONG.items()}}
    tasks = compile_kernels.tasks_for(compile_kernels.nvrtc_library(), [80, 120], list(names), [])
    results = compile_kernels.compile_all(tasks, 600)
    assert results[:2] == ["", ""] and all(results[2:])
    assert compile_kernels.report(tasks, results, names) == 3
    said = capsys.readouterr().err
    assert "right_test" not in said and all(f"a kernel of {name}_test" in said for name in WRONG)
    assert 'identifier "threadIndex" is undefined' in said and "for compute capability 12.0, error" in said
    # There is no result where there was no time.
    assert compile_kernels.compile_all(tasks[:1] * 2000, 0.1).count(None) > 1000


def test_few_sources_have_all_parts():
    parts = {"a": {1, 2, 3}, "b": {3, 4}, "c": {4}, "d": {2, 3, 4, 5, 6}, "e": set()}
    assert compile_kernels.cover({key: frozenset(of) for key, of in parts.items()}) == ["d", "a"]
    written = frozenset(["int x = 3;"])
    assert compile_kernels.parts_of("int x = 3;\n  y += exp(r12);\n", written) == {"int x = 3;", "y", "exp"}
    assert compile_kernels.unused({"a.cl": frozenset("12"), "b.cl": frozenset("23")}, ["1\n2"]) == ["b.cl"]
    tasks = compile_kernels.tasks_for(None, [80, 90], ["file"], ["x", "y", "z"])
    assert [(task.source, task.architecture) for task in tasks] == [
        ("file", 80),
        ("file", 90),
        ("x", 80),
        ("y", 90),
        ("z", 80),
    ]


def test_programs_without_a_source_are_not_run(tmp_path):
    sources, programs = tmp_path / "sources", tmp_path / "programs"
    for folder, names in ((sources, ("matmul_test.cc", "fixture_test.cc")), (programs, ("matmul_test", "moved_test"))):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    assert compile_kernels.programs_of(sources, programs) == [programs / "matmul_test"]
