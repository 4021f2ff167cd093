"""The examples in docs/front-end.md and in the docstrings of what it is about say what really comes out."""

import doctest
import inspect
import re

import pytest

import tensorflow_xpu
from tests.support.installed import ROOT
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.usefixtures("no_options")]


RUN = """
import doctest
options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
test = doctest.DocTestParser().get_doctest({text!r}, {{}}, "example", None, 0)
result = doctest.DocTestRunner(optionflags=options).run(test)
assert result.attempted and not result.failed
"""
NO_OPENCL = {"OCL_ICD_VENDORS": "/nowhere/"}  # whose devices are others on every machine
PAGE = (ROOT / "docs" / "front-end.md").read_text()
SECTIONS = ("Devices", "The subdevice type behind a device type", "Options", "Other plugins")
BLOCKS = [
    (section, block)
    for section, text in re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE)
    if section in SECTIONS
    for block in re.findall(r"^```pycon\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
]


@pytest.fixture(scope="module")
def plugins(compile_plugin, tmp_path_factory):
    """A folder with the libraries of the page."""
    source = ROOT / "tensorflow_plugin" / "conformance" / "tests" / "sample_plugin.cc"
    folder = tmp_path_factory.mktemp("plugins")
    for name, platform, its_type in [("npu", "NPU_SAMPLE", "NPU"), ("other", "OTHER_SAMPLE", "XPU")]:
        defines = [f'-DSAMPLE_NAME="{platform}"', f'-DSAMPLE_TYPE="{its_type}"']
        library = compile_plugin(source, name, *defines, "-lpthread")
        library.rename(folder / f"lib{name}.so")
    return folder


@pytest.mark.parametrize(("section", "block"), BLOCKS, ids=[f"{section}-{i}" for i, (section, _) in enumerate(BLOCKS)])
def test_examples_of_the_page(xpu_device, section, block, request):
    folder = request.getfixturevalue("plugins") if section == "Other plugins" else None
    outcome = run_code(RUN.format(text=block), environment=NO_OPENCL, cwd=folder)
    assert outcome.returncode == 0, outcome.stdout


def test_every_section_has_examples():
    assert [section for section in SECTIONS if section not in dict(BLOCKS)] == []


DOCUMENTED = ["XPUError", "configure", "get_device_details", "get_subdevice_mapping", "list_logical_devices"]
DOCUMENTED += ["list_physical_devices", "set_subdevice_mapping", "show_config", "synchronize"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, *DOCUMENTED])
def test_examples_of_docstrings(xpu_device, name):
    text = inspect.getdoc(getattr(tensorflow_xpu, name) if name else tensorflow_xpu)
    assert doctest.DocTestParser().get_examples(text)
    outcome = run_code(RUN.format(text=text), environment=NO_OPENCL)
    assert outcome.returncode == 0, outcome.stdout
