"""The wheel: what is in it, that it needs nothing but TensorFlow and the C library, that it installs and works."""

import importlib.metadata
import importlib.util
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

from tests.support.installed import CORE, LOADER, MINOR, ROOT, SHARED, SITE
from tests.support.processes import run, run_code
from tests.support.requirements import need

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

# Libraries of the system that every Linux with glibc has (those of the manylinux policy that are used).
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1"}
SYSTEM |= {"ld-linux-x86-64.so.2"}
TENSORFLOW = {"libtensorflow_framework.so.2", "libtensorflow_cc.so.2"}
# The versions that the installed wheel has cores for: one, or several (tools/versions.py).
CORES = (SITE / "tensorflow_xpu" / "lib").glob(CORE.replace(MINOR, "*"))
MINORS = sorted(path.stem.removeprefix(CORE.removesuffix(f"{MINOR}.so")) for path in CORES)
# The needs of each library beyond the system's and the wheel's.
ALLOWED = {}
for minor in MINORS:
    ALLOWED[CORE.replace(MINOR, minor)] = TENSORFLOW
    ALLOWED[f"_interop_{minor}"] = TENSORFLOW | {"lib_pywrap_tensorflow_common.so"}


def files_of(record):
    """The entries of a RECORD about the wheel's files; pip adds the ones that it writes itself."""
    return {line for line in record.splitlines() if not line.startswith("tensorflow_xpu-")}


@pytest.fixture(scope="module")
def wheel():
    """The one that is installed."""
    installed = files_of(importlib.metadata.distribution("tensorflow_xpu").read_text("RECORD"))
    for path in [*(ROOT / "dist").glob("*.whl"), *(ROOT / "dist" / "all").glob("*.whl")]:
        with zipfile.ZipFile(path) as archive:
            record = next(name for name in archive.namelist() if name.endswith("dist-info/RECORD"))
            if files_of(archive.read(record).decode()) <= installed:
                return path
    raise AssertionError("no wheel in dist/ is the one that is installed: run `make install` first")


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def dynamic(library, tag):
    """The values of a tag in a library's dynamic section."""
    text = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def libraries(folder):
    return sorted(path for path in pathlib.Path(folder).rglob("*.so*") if path.is_file())


def test_layout(unpacked, wheel):
    assert re.fullmatch(r"tensorflow_xpu-[\d.]+-cp3\d+-cp3\d+-manylinux_2_\d+_x86_64\.whl", wheel.name)
    assert {path.name for path in unpacked.iterdir() if "dist-info" not in path.name} == {
        "tensorflow-plugins",
        "tensorflow_xpu",
    }
    assert [path.name for path in (unpacked / "tensorflow-plugins").iterdir()] == [LOADER]
    names = {path.name for path in (unpacked / "tensorflow_xpu" / "lib").iterdir()}
    assert MINOR in MINORS
    cores = {CORE.replace(MINOR, minor) for minor in MINORS}
    assert names == {*cores, *(core.replace(".so", ".abi") for core in cores), SHARED, "libdnnl.so.3", "libgomp.so.1"}
    assert [path.name for path in (unpacked / "tensorflow_xpu" / "bin").iterdir()] == ["conformance"]
    package = {path.name for path in (unpacked / "tensorflow_xpu").iterdir() if path.is_file() and path.suffix != ".py"}
    assert {name.split(".")[0] for name in package} == {"py", "_native", *(f"_interop_{minor}" for minor in MINORS)}, (
        package
    )
    hooks = {path.name for path in (unpacked / "tensorflow_xpu" / "__pyinstaller").iterdir()}
    assert hooks == {"__init__.py", "hook-tensorflow-plugins.py", "hook-tensorflow_xpu.py"}
    metadata = next(unpacked.glob("*.dist-info")) / "METADATA"
    required = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist")]
    assert all('extra == "cuda"' in line for line in required), required


def test_licenses_travel_with_it(unpacked):
    """Ours, a notice that names every file of others, and each text that it names, as the others ship it."""
    metadata = next(unpacked.glob("*.dist-info"))
    licenses = metadata / "licenses"
    expression = re.search("^License-Expression: (.*)$", (metadata / "METADATA").read_text(), re.M).group(1)
    notice = (licenses / "NOTICE").read_text()
    names = re.findall(r"license: +([\w.-]+(?: WITH [\w.-]+)?)", notice)
    assert len(names) == 8 and [name for name in names if name not in expression] == []
    for library in {*libraries(unpacked)} - {unpacked / "tensorflow-plugins" / LOADER}:
        path = re.sub(rf"_({'|'.join(MINORS)})\b", "_*", str(library.relative_to(unpacked)))
        assert re.sub(r"\*?\.cpython.*", "*.so", path) in notice, f"NOTICE does not say whose work is in {path}"
    texts = {path.name: path for path in (licenses / "third_party" / "licenses").iterdir()}
    assert sorted(texts) == sorted(re.findall(r"[\w.-]+\.txt", notice))
    for name, shipped in {
        "oneDNN-LICENSE.txt": pathlib.Path(sys.prefix, "share/doc/onednn/LICENSE"),
        "oneDNN-THIRD-PARTY-PROGRAMS.txt": pathlib.Path(sys.prefix, "share/doc/onednn/THIRD-PARTY-PROGRAMS"),
        "pybind11-LICENSE.txt": next(importlib.metadata.distribution("pybind11")._path.rglob("LICENSE")),
    }.items():
        assert texts[name].read_text() == shipped.read_text(), f"{name} is not {shipped}"
    assert "Apache License" in (licenses / "LICENSE").read_text()
    assert "Mozilla Public License Version 2.0" in texts["eigen-MPL-2.0.txt"].read_text()
    assert "GNU GENERAL PUBLIC LICENSE" in texts["libgomp-GPL-3.0.txt"].read_text()


def test_nothing_outside_is_needed(unpacked):
    assert len(libraries(unpacked)) == 5 + 2 * len(MINORS)
    assert set(dynamic(unpacked / "tensorflow_xpu" / "bin" / "conformance", "NEEDED")) <= SYSTEM
    inside = {path.name for path in (unpacked / "tensorflow_xpu" / "lib").iterdir()}
    for library in libraries(unpacked):
        allowed = SYSTEM | inside | ALLOWED.get(library.name, ALLOWED.get(library.name.split(".")[0], set()))
        assert set(dynamic(library, "NEEDED")) <= allowed, library.name
        for path in dynamic(library, "RUNPATH") + dynamic(library, "RPATH"):
            assert all(part.startswith("$ORIGIN") for part in path.split(":")), (library.name, path)


def versions_needed(library):
    """The minor versions of glibc 2 whose symbols a library asks for."""
    text = subprocess.run(["objdump", "-T", str(library)], capture_output=True, text=True, check=True).stdout
    return {int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", text)}


def test_the_tag_is_the_glibc_that_it_needs(unpacked, wheel):
    files = [*libraries(unpacked), unpacked / "tensorflow_xpu" / "bin" / "conformance"]
    needed = max(max(versions_needed(path), default=0) for path in files)
    assert f"-manylinux_2_{needed}_x86_64.whl" in wheel.name
    assert f"manylinux_2_{needed}_x86_64" in (next(unpacked.glob("*.dist-info")) / "WHEEL").read_text()


def test_auditwheel_agrees(wheel):
    """Symbols ask for the tag's glibc, and nothing but TensorFlow's libraries keeps it from manylinux."""
    need("auditwheel")
    outcome = run("-m", "auditwheel", "-v", "show", wheel)
    assert outcome.returncode == 0, outcome
    tag = wheel.name.removesuffix(".whl").rpartition("-")[2]
    said = " ".join((outcome.stdout + outcome.stderr).split())
    assert f'This constrains the platform tag to "{tag}"' in said, outcome
    eliminate = re.findall(
        f"tag '{tag}' the following shared library dependencies will need to be eliminated: ([^I]*)", said
    )
    assert [set(names.strip().split(", ")) for names in eliminate] == [set.union(*ALLOWED.values())], outcome


def test_what_knows_no_tensorflow_is_in_one_library(unpacked):
    """A core has none of it, so that another version's costs little; and there is one of each variable."""
    lib = unpacked / "tensorflow_xpu" / "lib"
    assert SHARED in dynamic(lib / CORE, "NEEDED")
    assert set(dynamic(lib / SHARED, "NEEDED")) <= SYSTEM | {"libdnnl.so.3", "libgomp.so.1"}
    unstripped = ROOT / "bazel-bin" / "tensorflow_plugin" / CORE
    text = subprocess.run(["nm", "-C", "--defined-only", str(unstripped)], capture_output=True, text=True).stdout
    ours = [line for line in text.splitlines() if re.search(r" [tTbBdD] xpu::", line)]
    assert [line for line in ours if " xpu::RegisterAllOps" in line] != []  # it is read
    shared = "Backends() trace::internal::on trace::Intern( commands::Optimize( Device::Launch("
    for name in shared.split():
        assert [line for line in ours if line.split(" ", 2)[2].startswith(f"xpu::{name}")] == [], name


def test_the_same_sources_give_the_same_dates(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_loader_needs_no_tensorflow(unpacked):
    loader = unpacked / "tensorflow-plugins" / LOADER
    assert set(dynamic(loader, "NEEDED")) <= SYSTEM
    text = subprocess.run(
        ["nm", "-D", "--undefined-only", str(loader)], capture_output=True, text=True, check=True
    ).stdout
    assert " TF_" not in text


def test_it_installs_into_a_clean_environment(wheel, packages, tmp_path):
    """A new environment with stock TensorFlow and the wheel: a Keras script trains on the XPU."""
    outcome = run("-m", "venv", tmp_path / "venv")
    assert outcome.returncode == 0, outcome
    python = tmp_path / "venv" / "bin" / "python"
    outcome = run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, python=python)
    assert outcome.returncode == 0, outcome
    code = """
        import json
        import keras, numpy as np, tensorflow as tf, tensorflow_xpu
        x = np.random.default_rng(0).standard_normal((64, 4)).astype("float32")
        with tf.device("/xpu:0"):
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(x, x.sum(1), verbose=0)
        view = np.from_dlpack(model.layers[0].kernel.value.read_value())
        assert np.array_equal(view, model.layers[0].kernel.numpy())
        assert tensorflow_xpu.dlpack.c_api_missing is None, tensorflow_xpu.dlpack.c_api_missing
        print(json.dumps(model.layers[0].kernel.value.device))
    """
    environment = {"PYTHONPATH": str(packages)}
    outcome = run_code(code, environment=environment, python=python, cwd=tmp_path)
    assert outcome.returncode == 0, outcome
    assert outcome.json.endswith("XPU:0")
    outcome = run("-m", "tensorflow_xpu", "doctor", environment=environment, python=python, cwd=tmp_path)
    assert outcome.returncode == 0, outcome
    outcome = run("-m", "pip", "uninstall", "--quiet", "--yes", "tensorflow_xpu", python=python)
    assert outcome.returncode == 0, outcome
    assert list((tmp_path / "venv").rglob("*tensorflow*")) == []
