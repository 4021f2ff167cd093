"""docs/architecture.md says who depends on whom: the BUILD files, their visibility and the includes agree."""

import builtins
import collections
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "tensorflow_plugin"
MOST_FILES = 40  # of a folder
EXTERNAL = {
    "@tensorflow": "TensorFlow",
    "@onednn": "oneDNN",
    "@eigen": "Eigen",
    "@dlpack": "DLPack",
    "@opencl_headers": "OpenCL's headers",
    "@python": "Python",
}


def packages():
    """The folders that have a BUILD file, tests apart: "." is tensorflow_plugin itself."""
    folders = (build.parent.relative_to(PLUGIN).as_posix() for build in PLUGIN.rglob("BUILD"))
    return sorted(folder for folder in folders if "tests" not in folder.split("/"))


def package_of(path):
    """The nearest folder around a file of tensorflow_plugin that has a BUILD file."""
    folder = pathlib.PurePosixPath(path).parent
    while not (PLUGIN / folder / "BUILD").exists():
        folder = folder.parent
    return folder.as_posix()


def targets(package):
    """The rules of a package's BUILD file as dictionaries of their arguments, `rule` among them."""
    text = (PLUGIN / package / "BUILD").read_text()
    found = []

    def rule(name):
        def call(*_args, **arguments):
            found.append({"rule": name, **arguments})
            return []

        return call

    names = set(re.findall(r"\b([a-z_]+)\(", text)) - set(dir(builtins))
    constants = {name: [] for name in re.findall(r"\b([A-Z_]{2,})\b", text)}  # what `load` brings
    exec(text, {**constants, **{name: rule(name) for name in names}})
    return found


def label(text, package):
    """//tensorflow_plugin/a/b:c -> a/b and c; another repository's by its name."""
    if text.startswith("@"):
        return text.split("//")[0], ""
    if text.startswith(":"):
        return package, text[1:]
    folder, _, name = text.removeprefix("//tensorflow_plugin").lstrip("/").partition(":")
    folder = folder or "."
    return folder, name or folder.split("/")[-1]


def is_test(target):
    return target["rule"].endswith("_test") or target.get("testonly", False)


def built_edges(package):
    """The dependencies of the package's targets, by package."""
    found = set()
    for target in targets(package):
        for dep in target.get("deps", []) if not is_test(target) else []:
            folder, _ = label(dep, package)
            if folder != package and folder != "@googletest":
                found.add(EXTERNAL.get(folder, folder))
    return found


# The packages that any folder under backends/ may use.
FOR_BACKENDS = {"backends/plain", "backends/host_runtime", "primitives", "trace"}


def stated_edges():
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.split("| Package | depends on |")[1].split("\n\n")[0]
    edges = {}
    for row in re.findall(r"^\| `([^`]+)` \|(.*)\|$", table, re.MULTILINE):
        edges[row[0]] = {
            re.sub("`", "", name).strip() for name in row[1].split(",") if name.strip() not in ("", "nothing")
        }
    for package in packages():
        if package.startswith("backends/") and package not in edges:  # a new backend, with libraries of its own
            edges[package] = {
                e for e in built_edges(package) if e in FOR_BACKENDS or e not in {*packages(), "TensorFlow"}
            }
    return edges


def test_the_page_names_every_package():
    assert sorted(stated_edges()) == packages()


@pytest.mark.parametrize("package", packages())
def test_dependencies_are_those_that_the_page_states(package):
    assert built_edges(package) == stated_edges()[package]


@pytest.mark.parametrize("package", packages())
def test_includes_are_of_stated_dependencies(package):
    # Bazel lets a file include what its dependencies' dependencies have.
    allowed = stated_edges()[package] | {package}
    wrong = []
    for source in sorted((PLUGIN / package).rglob("*")):
        if package_of(source.relative_to(PLUGIN)) != package:
            continue
        if source.suffix not in {".cc", ".h"} or source.stem.endswith("_test"):
            continue
        for included in re.findall(r'#include "tensorflow_plugin/([^"]+)"', source.read_text()):
            if package_of(included) not in allowed:
                wrong.append(f"{source.name} includes {included}")
    assert not wrong


@pytest.mark.parametrize("package", [p for p in packages() if p.split("/")[0] in ("primitives", "backends")])
def test_backends_and_what_they_implement_build_without_tensorflow(package):
    assert not built_edges(package) & {"TensorFlow", "framework", "device", "ops", "."}
    for source in (PLUGIN / package).rglob("*.*"):
        if package_of(source.relative_to(PLUGIN)) != package:
            continue
        assert not re.search(r'#include [<"](tensorflow|tsl|xla|absl)/', source.read_text()), source


def test_visibility_is_stated_edge_by_edge():
    """A target that others of the plugin may use names each of them; it grants no edge that is not there."""
    users = {}  # target -> packages
    for build in PLUGIN.rglob("BUILD"):
        package = build.parent.relative_to(PLUGIN).as_posix()
        for target in targets(package):
            for dep in target.get("deps", []):
                folder, name = label(dep, package)
                if not folder.startswith("@") and folder != package:
                    users.setdefault((folder, name), set()).add(package)
    for package in packages():
        rules = targets(package)
        default = next((rule["default_visibility"] for rule in rules if rule["rule"] == "package"), [])
        for rule in rules:
            if rule["rule"] not in ("cc_library", "tensorflow_library"):
                continue
            visibility = {v for v in rule.get("visibility", default) if v != "//visibility:private"}
            name = rule["name"]
            granted = {
                v.removeprefix("//tensorflow_plugin").lstrip("/").removesuffix(":__pkg__") or "." for v in visibility
            }
            used = users.get((package, name), set())
            if package in FOR_BACKENDS:
                granted.remove("backends:__subpackages__")
                used = {user for user in used if user.split("/")[0] != "backends"}
            assert granted == used, f"//tensorflow_plugin/{package}:{name} is visible to {granted}, used by {used}"


def test_what_is_compiled_for_each_tensorflow_is_used_for_each():
    """A library without its row would be linked as that of another version."""
    text = (PLUGIN / "tensorflow.bzl").read_text()
    rows = re.findall(r'"(//[^"]+)"', re.search(r"_BOUND = \[(.*?)\]", text, re.DOTALL)[1])
    made = {
        (package, t["name"]) for package in packages() for t in targets(package) if t["rule"] == "tensorflow_library"
    }
    assert {label(row, "") for row in rows} == made


def test_folders_are_of_a_size_that_one_can_look_through():
    files = [path for path in PLUGIN.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files += [path for folder in ("python", "tests", "benchmarks", "tools") for path in (ROOT / folder).rglob("*.py")]
    folders = collections.Counter(path.parent.relative_to(ROOT).as_posix() for path in files)
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}
