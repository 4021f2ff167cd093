"""The documentation says what the code does."""

import re

import pytest

from tests.conftest import ROOT


def test_configuration_lists_every_variable(xpu_device):
    from tensorflow_xpu._devices import core_description

    lines = ["| variable | values | default | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{v['name']}` | {v['values']} | {v['default']} | {v['meaning']} |" for v in core_description()["variables"]
    ]
    table = "\n".join(lines)
    assert table in (ROOT / "docs" / "configuration.md").read_text(), f"docs/configuration.md should have\n{table}"


@pytest.mark.host_only
def test_every_variable_in_the_sources_is_documented():
    sources = [path for folder in ("tensorflow_plugin", "python") for path in (ROOT / folder).rglob("*.[chp][cyp]*")]
    sources += list((ROOT / "tensorflow_plugin").rglob("*.h"))
    named = {
        name
        for path in sources
        if "tests" not in path.parts
        for name in re.findall(r"TF_XPU_[A-Z_]+", path.read_text())
    }
    documented = (ROOT / "docs" / "configuration.md").read_text()
    assert sorted(name for name in named if name not in documented) == []


@pytest.mark.host_only
@pytest.mark.parametrize(
    "page", sorted(path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
)
def test_links_and_paths_exist(page):
    text = (ROOT / page).read_text()
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (folder / target).exists(), f"{page} links to {target}"
    for path in re.findall(
        r"`((?:tensorflow_plugin|python|tests|tools|examples|benchmarks|docs|third_party)/[\w./]*)`", text
    ):
        assert (ROOT / path).exists(), f"{page} names {path}"


@pytest.mark.host_only
def test_the_runtime_page_names_tests_that_exist():
    sources = "".join(path.read_text() for path in (ROOT / "tensorflow_plugin").rglob("*_test.cc"))
    named = re.findall(r"`(?:\w+/)?([A-Z]\w+)\.([A-Z]\w+)`", (ROOT / "docs" / "runtime.md").read_text())
    assert len(named) > 40
    missing = [f"{suite}.{name}" for suite, name in named if f"({suite}, {name})" not in sources]
    assert missing == []


def test_readme_is_one_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80
