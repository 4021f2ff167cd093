"""The documentation says what the code does."""

import importlib.util
import pathlib
import re
import shlex

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run_code

pytestmark = pytest.mark.without_isolation


def test_every_row_of_a_table_is_one_line():
    """Markdown ends a row at the end of its line."""
    broken = []
    for page in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        rows = [line.strip() for line in text.splitlines() if line.strip().startswith("|")]
        broken += [f"{page.name}: {row}" for row in rows if not row.endswith("|") or row.count("|") < 2]
    assert broken == []


def test_configuration_lists_every_variable():
    from tensorflow_xpu._options import documentation

    table = documentation()
    assert table in (ROOT / "docs" / "configuration.md").read_text(), f"docs/configuration.md should have\n{table}"


@pytest.mark.host_only
def test_what_tensorflow_offers_is_taken_as_the_configuration_page_says():
    outcome = run_code(
        """
        import json
        import tensorflow as tf

        def error(f):
            try:
                f()
            except (ValueError, tf.errors.OpError) as error:
                return str(error)

        virtual = [tf.config.LogicalDeviceConfiguration(memory_limit=100)] * 2
        xpu = tf.config.list_physical_devices("XPU")[0]
        errors = [error(lambda: tf.config.set_logical_device_configuration(xpu, virtual))]
        tf.config.set_visible_devices([], "XPU")
        used = [d.name for d in tf.config.list_logical_devices("XPU")]
        for name in ("/xpu:0", "/XPU:0", "/device:XPU:0"):
            with tf.device(name):
                used.append((tf.ones(3) + 1).device[-13:])
        used.append((tf.ones(3) + 1).device[-13:])
        tf.config.set_soft_device_placement(False)
        with tf.device("/xpu:0"):
            errors.append(error(lambda: tf.strings.length(["a"])))
            used.append(tf.function(lambda x: x * 2, jit_compile=True)(tf.ones(3)).device[-13:])
        print(json.dumps([used, errors]))
        """
    )
    used, errors = outcome.json
    assert used == ["/device:XPU:0"] * 6, outcome
    for said, words in zip(errors, ["not supported for XPU", "Supported device types [CPU]"]):
        assert words in said, outcome


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


PAGES = sorted(path.relative_to(ROOT) for folder in (".", "docs", "tests") for path in (ROOT / folder).glob("*.md"))


@pytest.mark.host_only
@pytest.mark.parametrize("page", PAGES)
def test_links_and_paths_exist(page):
    text = (ROOT / page).read_text()
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (folder / target).exists(), f"{page} links to {target}"
    for path in re.findall(
        r"`((?:tensorflow_plugin|python|tests|tools|examples|benchmarks|docs|third_party)/[\w./]*)`", text
    ):
        assert (ROOT / path).exists(), f"{page} names {path}"


def missing_of_make(arguments):
    rules = (ROOT / "Makefile").read_text()
    targets = [argument for argument in arguments if not argument.startswith("-") and "=" not in argument]
    return [target for target in targets if not re.search(rf"^{target}:", rules, re.M)]


def missing_of_bazel(arguments):
    missing = []
    for argument in arguments[1:]:
        package, _, name = argument.removeprefix("//").removesuffix("/...").partition(":")
        build = ROOT / package / "BUILD"
        if argument.startswith("--config="):
            config = argument.removeprefix("--config=")
            if f"build:{config} " not in (ROOT / ".bazelrc").read_text():
                missing.append(argument)
        elif argument.startswith("//") and not (
            (ROOT / package).is_dir()
            and (not name or (build.parent / f"{name}.cc").exists() or f'"{name}"' in build.read_text())
        ):
            missing.append(argument)
    return missing


def missing_of_python(arguments):
    if arguments[0] == "-m" and arguments[1] != "pytest":
        return [] if importlib.util.find_spec(arguments[1]) else [arguments[1]]
    files = [argument for argument in arguments if argument.endswith(".py") or "tests/" in argument]
    return [file for file in files if not (ROOT / file.partition("::")[0]).exists() or not names_a_test(file)]


def names_a_test(file):
    """True if `path::test_function[parameter]` names a function that is there; true of a path alone."""
    path, _, test = file.partition("::")
    return not test or f"def {test.partition('[')[0]}(" in (ROOT / path).read_text()


MISSING = {"make": missing_of_make, "bazel.sh": missing_of_bazel, "python": missing_of_python}


def commands(page):
    """The command lines in a page's shell blocks, as words, without the variables set before them."""
    for block in re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                del words[0]
            if words:
                yield words


def anchors(text):
    """Where links to a page may lead: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.host_only
@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_headings(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", (ROOT / page).read_text()):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert anchor in anchors(path.read_text()), f"{page} links to {target}#{anchor}"


def test_headings_become_anchors():
    assert anchors("# What `is` it?\n\n## On a GPU: 1.2\n") == {"what-is-it", "on-a-gpu-12"}


@pytest.mark.host_only
@pytest.mark.parametrize("page", PAGES)
def test_commands_name_what_exists(page):
    checked = 0
    for program, *arguments in commands(page):
        assert not program.startswith("tools/") or (ROOT / program).exists(), f"{page} runs {program}"
        check = MISSING.get(pathlib.Path(program).name)
        if check is None or "script.py" in arguments:  # the reader's own
            continue
        assert check(arguments) == [], f"{page}: {program} {' '.join(arguments)}"
        checked += 1
    if page.name == "CONTRIBUTING.md":
        assert checked > 10


@pytest.mark.host_only
@pytest.mark.parametrize(
    "command",
    [
        "make nothing",
        "tools/bazel.sh test //tensorflow_plugin/backends/tests:no_test",
        "tools/bazel.sh test --config=nosan //tensorflow_plugin/...",
        "tools/bazel.sh test //tensorflow_plugin/nowhere/...",
        ".venv/bin/python -m tests.nothing",
        ".venv/bin/python -m pytest tests/test_nothing.py",
        "python 'tests/sweep/test_sweep.py::test_nothing[Tanh]'",
    ],
)
def test_commands_that_name_what_does_not_exist_are_found(command):
    program, *arguments = shlex.split(command)
    assert len(MISSING[pathlib.Path(program).name](arguments)) == 1


@pytest.mark.host_only
def test_the_runtime_page_names_tests_that_exist():
    sources = "".join(path.read_text() for path in (ROOT / "tensorflow_plugin").rglob("*_test.cc"))
    page = (ROOT / "docs" / "runtime.md").read_text()
    named = re.findall(r"`(?:\w+/)?([A-Z]\w+)\.([A-Z]\w+)`", page)
    assert len(named) > 40
    assert [f"{suite}.{name}" for suite, name in named if f"({suite}, {name})" not in sources] == []
    # The first part of Instance/Suite.Name, and the functions of the Python tests.
    instances = re.findall(r"`(\w+)/([A-Z]\w+)\.[A-Z]\w+`", page)
    assert [name for name in instances if f"INSTANTIATE_TEST_SUITE_P({name[0]}, {name[1]}," not in sources] == []
    python = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    functions = re.findall(r"`(test_\w+)`", page)
    assert len(functions) > 10
    assert [name for name in functions if f"def {name}(" not in python] == []
    # A row of a table without a test holds nothing.
    rows = [row for table in re.findall(r"\| test \|\n\|[-|]+\|\n((?:\|.*\n)+)", page) for row in table.splitlines()]
    assert len(rows) > 40
    assert [row for row in rows if not re.search(r"`[\w/.]+` \|$|^\| \*\*\w+\*\* \| \| \|$", row)] == []


def test_the_page_on_backends_quotes_the_example_which_is_short():
    folder = ROOT / "tensorflow_plugin" / "backends" / "example"
    source = (folder / "backend.cc").read_text()
    quotes = re.findall(r"^```cpp\n(.*?)^```", (ROOT / "docs" / "new-backend.md").read_text(), re.M | re.S)
    assert len(quotes) > 4
    for quote in quotes:
        assert f"\n{quote}" in source, quote
    assert len((source + (folder / "backend.h").read_text()).splitlines()) <= 250


def test_what_a_backend_changes_outside_of_its_folder_is_what_its_page_shows():
    """Each block of added lines, with the files that the text before it names."""
    page = (ROOT / "docs" / "new-backend.md").read_text().partition("## Outside of the folder")[2].partition("\n## ")[0]
    blocks = re.findall(r"((?:(?!^```)[\s\S])*?)^```diff\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 5
    for text, lines in blocks:
        files = "\n".join((ROOT / path).read_text() for path in re.findall(r"`([\w./]+/[\w.]+)`", text))
        for line in lines.splitlines():
            assert line.startswith("+") and line[1:] in files.splitlines(), line


@pytest.mark.host_only
def test_the_glossary_defines_each_word_once_and_names_every_pass():
    from tensorflow_xpu._options import PASSES

    page = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|(?: (.*?) \|)? (.+?) \|$", page, re.M)
    words = [word for word, _, _ in rows]
    assert len(words) > 30
    assert len(words) == len(set(words))
    named = [name for _, names, _ in rows for name in re.findall(r"`(\w+)`", names or "")]
    assert set(named) == set(PASSES)
    clusters = (ROOT / "docs" / "clusters.md").read_text()
    assert set(re.findall(r"^ *\| `(\w+)` \|", clusters, re.M)) == set(PASSES)


def test_the_readme_counts_the_ops():
    ops = re.search(r"^(\d+) ops, \d+ kernels\.$", (ROOT / "docs" / "ops.md").read_text(), re.MULTILINE)
    assert f"| Ops | {ops[1]}, tested against" in (ROOT / "README.md").read_text()


def test_readme_is_one_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100
