"""`python -m tensorflow_xpu conformance`: this plugin passes every check, and the documentation lists them."""

import json
import re

import pytest

from tests.support.installed import BACKENDS, LOADER, ROOT
from tests.support.processes import run

pytestmark = pytest.mark.without_isolation


def conformance(*arguments, **options):
    return run("-m", "tensorflow_xpu", "conformance", *arguments, **options)


VARIANTS = ({}, {"TF_XPU_ISOLATE_MEMORY": "1"}, {"TF_XPU_ALLOCATOR": "pool"})


CASES = [
    pytest.param(
        backend,
        variant,
        id=f"{backend}-{next(iter(variant), 'plain')}",
        marks=pytest.mark.slow if backend == "XPU_OPENCL" and variant else (),
    )
    for backend in BACKENDS
    for variant in VARIANTS
]


@pytest.mark.host_only
@pytest.mark.parametrize(("backend", "variant"), CASES)
def test_this_plugin_passes(backend, variant):
    environment = {"TF_XPU_SUBDEVICE": backend, "TF_XPU_DEVICE_COUNT": "2", **variant}
    outcome = conformance("--json", "--jobs", "4", "--timeout", "30", environment=environment)
    report = json.loads(outcome.stdout)
    assert report["library"].endswith(LOADER)
    assert report["description"] == f"platform {backend} of type XPU, 2 devices"
    assert [check for check in report["checks"] if check["outcome"] == "fail"] == []
    assert [check["name"] for check in report["checks"] if check["outcome"] == "not offered"] == ["memory.unified"]
    assert outcome.returncode == 0, outcome


@pytest.mark.host_only
def test_one_device_is_enough():
    outcome = conformance("--only", "devices")
    assert outcome.returncode == 0, outcome
    assert "4 passed, 0 failed, 2 not offered" in outcome.stdout


@pytest.mark.host_only
def test_without_tensorflow_it_says_why_there_is_nothing_to_examine():
    outcome = conformance("--tensorflow", "", "--only", "devices.count")
    assert outcome.returncode == 1, outcome
    assert "no TensorFlow was found in this process" in outcome.stdout


# Whatever a stranger names: C++ of a library, or a path, and what the report says of it.
STRANGERS = {
    "a path that is none": ("/nowhere/plugin.so", "/nowhere/plugin.so: cannot open shared object file"),
    "a folder": ("/", "/: cannot read file data: Is a directory"),
    "no library": (__file__, "invalid ELF header"),
    "no plugin": ("int nothing;", "it has no SE_InitPlugin, so TensorFlow sees no device in it"),
    "one that crashes": (
        'extern "C" PUBLIC void SE_InitPlugin() { __builtin_trap(); }',
        "the last call was SE_InitPlugin",
    ),
    "one that crashes when it is loaded": ("static int n = (__builtin_trap(), 1);", "the library crashed with signal"),
    "one that ends the process": (
        '#include <cstdlib>\nextern "C" PUBLIC void SE_InitPlugin() { std::exit(0); }',
        "the process ended with exit code 0; the last call was SE_InitPlugin",
    ),
    "one that hangs": (
        '#include <unistd.h>\nextern "C" PUBLIC void SE_InitPlugin() { pause(); }',
        "the library did not end within 1 s; the last call was SE_InitPlugin",
    ),
}


@pytest.mark.host_only
@pytest.mark.parametrize(("library", "words"), STRANGERS.values(), ids=STRANGERS)
def test_another_library_can_be_named(compile_plugin, library, words):
    if not library.startswith("/"):
        library = compile_plugin(library, "stranger", '-DPUBLIC=__attribute__((visibility("default")))')
    outcome = conformance("--timeout", "1", library, timeout=60)
    assert outcome.returncode == 1, outcome
    assert words in outcome.stdout
    assert re.search(r"[01] passed, [12] failed, \d\d not offered", outcome.stdout), outcome
    assert outcome.stderr == ""


@pytest.mark.host_only
def test_callbacks_are_measured():
    outcome = conformance("--measure", "--json")
    assert outcome.returncode == 0, outcome
    checks = json.loads(outcome.stdout)["checks"]
    assert {check["outcome"] for check in checks} == {"pass"}, outcome
    number = r"([\d.]+) us"
    times = {check["name"]: re.fullmatch(rf"{number}(?:; memcpy {number})?", check["reason"]) for check in checks}
    assert all(times.values()), outcome
    for direction in ("to", "from"):
        small, large = times[f"measure.{direction}_device_4KiB"], times[f"measure.{direction}_device_64MiB"]
        for side in (1, 2):  # the copy and memcpy: what is measured grows with its size, 16384 times
            assert float(large[side]) > 100 * float(small[side]) > 0, outcome
    assert conformance("--measure", "--jobs", "2").returncode == 2


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("option", "heading"),
    [((), "| check | what must hold |"), (("--measure",), "| measurement | what |")],
    ids=["checks", "measurements"],
)
def test_the_documentation_lists_them(option, heading):
    outcome = conformance("--list", "--json", *option)
    assert outcome.returncode == 0, outcome
    rows = [f"| `{check['name']}` | {check['meaning']} |" for check in json.loads(outcome.stdout)]
    table = "\n".join([heading, "|---|---|", *rows])
    page = (ROOT / "docs" / "conformance.md").read_text()
    assert f"{table}\n\n" in page, f"docs/conformance.md should have\n{table}"
    # Everything else that it calls a check is one.
    names = {row.split("`")[1] for row in rows}
    themes = {name.split(".")[0] for name in names}
    mentioned = {name for name in re.findall(r"`([a-z_]+\.\w+)`", page) if name.split(".")[0] in themes}
    assert mentioned == names
