"""Files of loops (tensorflow_plugin/backends/cpu/simd/isa.h), of which an editor sees one at a time."""

import pathlib
import re
import subprocess

import pytest

from tests.support.installed import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.host_only, pytest.mark.without_isolation]

CPU = ROOT / "tensorflow_plugin" / "backends" / "cpu"
FILES = sorted(file for file in CPU.glob("*/*.h") if re.search("^#define XPU_ISA_FILE", file.read_text(), re.M))

# The file twice, as two files that include it may do. Its loops are there for each instruction set, its macros are not.
PROGRAM = """
#include "{file}"
#include "{file}"
#if defined(XPU_ISA) || defined(XPU_VECTOR_BYTES) || defined(XPU_ISA_FILE) || defined(XPU_ISA_PASS)
#error "a macro is left"
#endif
using namespace xpu::cpu::baseline;
#if defined(__x86_64__)
using namespace xpu::cpu::avx2;
using namespace xpu::cpu::avx512;
#endif
"""


def test_the_folder_has_some():
    assert {"float_math.h", "vector_math.h", "float_loops.h", "matmul_loops.h"} <= {file.name for file in FILES}
    assert all(file in FILES for file in CPU.glob("*/*_loops.h"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_includes_what_it_needs(file: pathlib.Path):
    done = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", "-w", f"-I{ROOT}", "-x", "c++", "-"],
        input=PROGRAM.format(file=file.relative_to(ROOT)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[:3000]
