"""The files to touch to add an op, an instruction, a primitive, a pass, a backend or an option.

One of each is added to a copy of the sources. The additions are compiled, and run where no TensorFlow is needed. They
touch the files that CONTRIBUTING.md names. Another list of primitives or instructions breaks the build here.
"""

import concurrent.futures
import functools
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

from tests.support.installed import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.host_only, pytest.mark.without_isolation]

PLUGIN = "tensorflow_plugin"

# The additions: by kind and file, the new text and the text that follows it. A file that does not exist is made of its
# text.
ADDITIONS = {
    "an op": {
        "ops/math/unary.cc": [
            ('    {"LogicalNot", kBoolMask,', '    {"XpuTwice", kFloatMask, Twice},\n'),
            (
                "constexpr ElementwiseOp kUnaryOps[]",
                "FormulaValue Twice(const FormulaValue* x, double) { return x[0] + x[0]; }\n",
            ),
        ],
    },
    "an instruction": {
        "primitives/program.h": [("  V(LogicalNot, 1, kB,", "  V(Thrice, 1, kF, kSame) \\\n")],
        "backends/plain/scalar_ops.h": [("XPU_UNARY_OP(Reciprocal,", "XPU_UNARY_OP(Thrice, return x + x + x;);\n")],
    },
    "a primitive": {
        "primitives/descriptors.h": [
            (
                "// V(name): every primitive, once.",
                """
                // Numbers from the last to the first.   in: x dense [n] float   out: the same
                struct TurnDesc {
                  int64_t n = 0;

                  template <typename Visit>
                  void ForEachExtent(Visit&& visit) {
                    visit(n);
                  }
                };

                """,
            ),
            ("  V(Elementwise) ", "  V(Turn) \\\n"),
        ],
        "primitives/check_elements.cc": [
            (
                "bool IsDefined(const SuppressDesc&)",
                """
                Status Check(const TurnDesc& desc, Footprint* f) {
                  XPU_RETURN_IF_ERROR(View("Turn").Dense({desc.n}).As(DType::kFloat, NextIn(f)));
                  return View("Turn").Dense({desc.n}).As(DType::kFloat, NextOut(f));
                }
                bool IsDefined(const TurnDesc&) { return true; }
                std::string Name(const TurnDesc&) { return "Turn"; }
                """,
            )
        ],
        "backends/plain/loops.h": [
            ("Status Run(const SuppressDesc&", "Status Run(const TurnDesc& desc, const Args& args);\n")
        ],
        "backends/plain/turn.cc": [
            (
                "",
                """
                #include "tensorflow_plugin/backends/plain/loops.h"

                namespace xpu::plain {

                Status Run(const TurnDesc& desc, const Args& args) {
                  const auto* x = static_cast<const float*>(args.in[0]);
                  auto* y = static_cast<float*>(args.out[0]);
                  for (int64_t i = 0; i < desc.n; ++i) y[i] = x[desc.n - 1 - i];
                  return OkStatus();
                }

                }  // namespace xpu::plain
                """,
            )
        ],
        "backends/reference/kernels.cc": [("XPU_PLAIN(Suppress)", "XPU_PLAIN(Turn)\n")],
        "backends/cpu/kernels.cc": [("XPU_PLAIN(Suppress)", "XPU_PLAIN(Turn)\n")],
    },
    "a pass": {
        "commands/do_nothing.cc": [
            (
                "",
                """
                #include "tensorflow_plugin/commands/passes.h"

                namespace xpu::commands {
                void DoNothing(CommandList*) {}
                }  // namespace xpu::commands
                """,
            )
        ],
        "commands/passes.h": [("// All of them, but for those that", "void DoNothing(CommandList* list);\n\n")],
        "commands/optimize.cc": [
            (
                '    {"ScheduleIndexChecks", HasChecks, ScheduleIndexChecks},',
                '    {"DoNothing", nullptr, [](const Capabilities&, CommandList* list) { DoNothing(list); }},\n',
            )
        ],
    },
    "a backend": {
        "backends/backends.cc": [
            ("namespace xpu {", '#include "tensorflow_plugin/backends/mine/backend.h"\n\n'),
            ("      &cpu::TheBackend(),", "      &mine::TheBackend(),\n"),
        ],
        "backends/BUILD": [
            ('        "//tensorflow_plugin/backends/reference",', '        "//tensorflow_plugin/backends/mine",\n')
        ],
    },
    "an option": {
        "device/options.cc": [
            ("// All options, those of the loader", 'constexpr char kMine[] = "TF_XPU_MINE";\n'),
            ("  options.backend.large_pages =", '  read_choice(kMine, "0", "1");\n'),
        ],
        "../python/tensorflow_xpu/_options.py": [
            (
                '    Option(\n        "TF_XPU_ISOLATE_MEMORY",',
                '    Option(\n        "TF_XPU_MINE",\n        "mine", "0 or 1", "0", "1: as I wish", _flag),\n',
            )
        ],
        "../python/tensorflow_xpu/_subdevice.py": [
            ("    large_pages: bool | str | None = None,\n", "    mine: bool | str | None = None,\n")
        ],
    },
}
# Files of a new folder, or of a new name: CONTRIBUTING.md has a place for each.
NEW = {"backends/plain/turn.cc": "backends/plain/", "commands/do_nothing.cc": "commands/"}

PROGRAM = """
#include <iostream>
#include <vector>

#include "tensorflow_plugin/backends/mine/backend.h"
#include "tensorflow_plugin/backends/reference/backend.h"
#include "tensorflow_plugin/commands/passes.h"

using namespace xpu;

int main() {
  for (const Backend* backend : {&reference::TheBackend(), &mine::TheBackend()}) {
    std::unique_ptr<Device> device;
    if (!backend->CreateDevice(0, BackendOptions(), &device).ok()) return 1;
    const std::unique_ptr<Stream> stream = device->CreateStream();
    auto* x = static_cast<float*>(device->Allocate(12));
    auto* y = static_cast<float*>(device->Allocate(12));
    const std::vector<float> numbers = {1, 2, 4};
    const auto show = [&](Status status) {
      std::vector<float> results(3);
      if (status.ok()) status = stream->CopyDeviceToHost(results.data(), y, 12);
      stream->Wait();
      std::cout << backend->subdevice_type() << ":";
      if (!status.ok()) std::cout << " " << status.message();
      if (status.ok()) for (float number : results) std::cout << " " << number;
      std::cout << std::endl;
    };
    (void)stream->CopyHostToDevice(x, numbers.data(), 12);
    stream->Wait();
    Args args;
    args.in[0] = x;
    args.out[0] = y;
    args.in[1] = x;
    for (Opcode op : {Opcode::kAdd, Opcode::kThrice}) {
      ElementwiseDesc desc;
      desc.program = SingleOpProgram(op, DType::kFloat);
      desc.shape = {3};
      desc.in_strides[0] = desc.in_strides[1] = {1};
      show(device->Launch(*stream, desc, args));
    }
    TurnDesc turn;
    turn.n = 3;
    show(device->Launch(*stream, turn, args));
  }
  for (const std::string& pass : commands::PassNames()) std::cout << pass << " ";
  std::cout << std::endl;
}
"""
# The GPUs' answers of the new primitive.
OF_GPUS = """
#include "tensorflow_plugin/backends/gpu/primitives/capabilities.h"

bool Supported(const xpu::gpu::KernelCapabilities& gpus) { return gpus.Supports(xpu::TurnDesc()); }
"""
LINKED = (
    "primitives",
    "trace",
    "commands",
    "commands/quantization",
    "backends/host_runtime",
    "backends/plain",
    "backends/reference",
    "backends/mine",
)
COMPILED = (
    "ops/math/unary.cc",
    "device/options.cc",
    "backends/backends.cc",
    "backends/cpu/kernels.cc",
    "gpu.cc",
)


@functools.cache
def eigen() -> pathlib.Path:
    """The headers of Eigen as Bazel has made them for the backends."""
    base = subprocess.run(
        [ROOT / "tools" / "bazel.sh", "info", "output_base"], cwd=ROOT, capture_output=True, text=True
    )
    return pathlib.Path(base.stdout.strip()) / "external" / "eigen" / "include"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """The sources with one more of each kind."""
    folder = tmp_path_factory.mktemp("adding")
    for part in (PLUGIN, "python"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    example = folder / PLUGIN / "backends" / "example"
    mine = example.rename(example.with_name("mine"))
    for file in mine.iterdir():
        file.write_text(re.sub("example", "mine", file.read_text()).replace("EXAMPLE", "MINE"))
    for files in ADDITIONS.values():
        for name, additions in files.items():
            file = folder / PLUGIN / name
            for before, text in additions:
                there = file.read_text() if file.exists() else ""
                assert (there == "") == (before == "") and (not before or there.count(before) == 1), (name, before)
                file.write_text(
                    there.replace(before, textwrap.dedent(text) + before) if before else textwrap.dedent(text)
                )
    return folder


def compiled(folder, source, *options):
    command = ["g++", "-std=c++17", "-O0", "-w", f"-I{folder}", "-isystem", str(eigen()), *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, f"{source}: {done.stderr[:3000]}"


def test_one_more_of_each_is_compiled_and_runs(scratch):
    sources = [
        source
        for part in LINKED
        for source in sorted((scratch / PLUGIN / part).glob("*.cc"))
        if not source.stem.endswith("_test")
    ]
    (scratch / PLUGIN / "gpu.cc").write_text(OF_GPUS)
    rows = (scratch / "python" / "tensorflow_xpu" / "_options.py").read_text()
    names = re.findall(r'^ +"TF_XPU_[A-Z_]+",$', rows, re.MULTILINE)  # as tensorflow_plugin/device/BUILD has it
    assert '    "TF_XPU_MINE",' in names
    (scratch / PLUGIN / "device" / "option_names.inc").write_text("\n".join(names))
    main = scratch / "main.cc"
    main.write_text(PROGRAM)
    objects = [scratch / f"{number}.o" for number in range(len(sources) + 1)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(compiled, scratch, source, "-c", "-o", str(obj))
            for source, obj in zip([*sources, main], objects)
        ]
        jobs += [pool.submit(compiled, scratch, scratch / PLUGIN / name, "-fsyntax-only") for name in COMPILED]
        for job in jobs:
            job.result()
    program = scratch / "program"
    subprocess.run(["g++", *map(str, objects), "-o", str(program), "-fopenmp", "-ldl"], check=True)
    said = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert said[:3] == ["XPU_REFERENCE: 2 4 8", "XPU_REFERENCE: 3 6 12", "XPU_REFERENCE: 4 2 1"]
    # A backend denies what it says nothing of.
    assert said[3:6] == [
        "XPU_MINE: 2 4 8",
        *(f"XPU_MINE: this XPU backend does not implement {name}" for name in ("Thrice of float", "Turn")),
    ]
    assert "DoNothing" in said[6].split()


def test_the_table_of_options_has_one_more(scratch):
    code = "from tensorflow_xpu import _options; print(_options.named('mine').variable)"
    said = subprocess.run(
        ["python3", "-c", code], cwd=scratch / "python", capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == "TF_XPU_MINE"


@pytest.mark.parametrize("kind", ADDITIONS)
def test_contributing_names_what_is_touched(kind):
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (section,) = re.findall(rf"^## Adding {kind}\n(.*?)(?=^## )", page, re.M | re.S)
    (must,) = re.findall(r"^\| must \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", section, re.M)
    named = re.findall(r"^\| `([^`]+)`", must, re.M)
    touched = {NEW.get(name, name).removeprefix("../") for name in ADDITIONS[kind]}
    touched = {name if name.startswith("python/") else f"{PLUGIN}/{name}" for name in touched}
    if kind == "a backend":
        touched.add(f"{PLUGIN}/backends/")
    assert sorted(named) == sorted(touched)
