#!/usr/bin/env python3
"""Python tests with the plugin's libraries under the address, undefined-behaviour and leak sanitizers.

`tools/sanitized.py build` compiles them and makes build/sanitized, a virtual environment with the packages of .venv and
with the libraries in the place of the installed plugin. `tools/sanitized.py test [ARGUMENT]...` runs pytest there. The
default is a third of the sweep and of the tests of bad input: all of them take a quarter of an hour. Which third, the
day says, so that three days see them all; `--part 0/1` runs everything, `--part 2/3` one part again. The exit status is
pytest's, or 1 if a sanitizer has something to say about this project's code, which is then printed.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "sanitized"
REPORTS = VENV / "reports"
PACKAGES = pathlib.Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
OURS = ("tensorflow-plugins", "tensorflow_xpu")

# Findings in other people's code, or none of a sanitizer's business here.
ASAN_OPTIONS = {
    "log_path": REPORTS / "report",
    "detect_leaks": 1,
    "leak_check_at_exit": 0,  # tests/support/leaks.py looks earlier
    "detect_stack_use_after_return": 0,  # its stacks do not align vectors as GCC expects (GCC's bug 110027)
    "allocator_may_return_null": 1,  # tests ask for more memory than there is
    "detect_odr_violation": 0,  # the core and interop have each their own of what they share
    "alloc_dealloc_mismatch": 0,  # TensorFlow's
    "intercept_tls_get_addr": 0,  # by its address it takes a block for one of an older glibc, and crashes
    "handle_abort": 1,
    "quarantine_size_mb": 128,
    "malloc_context_size": 16,  # time
}

TESTS = (
    "tests/sweep",
    "tests/bad_input/test_crashes.py",
    "tests/bad_input/test_bad_input.py",
    "tests/bad_input/test_nn_errors.py",
)
PARTS = 3


def library(name: str) -> str:
    """The path of a library of the compiler."""
    return subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def bazel(*arguments: str) -> str:
    return subprocess.run(
        [ROOT / "tools" / "bazel.sh", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def build() -> None:
    """Makes build/sanitized."""
    # bazel-bin stays what the wheel is made of.
    bazel("build", "--config=asan", "--experimental_convenience_symlinks=ignore", "//:wheel_tree")
    tree = pathlib.Path(bazel("info", "--config=asan", "bazel-bin")) / "wheel_tree"
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", VENV], check=True)
    site, installed = VENV / PACKAGES, ROOT / ".venv" / PACKAGES
    for entry in installed.iterdir():
        if not entry.name.startswith((*OURS, "__pycache__")):
            (site / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "python" / "tensorflow_xpu", site / "tensorflow_xpu")
    for source in sorted(path for path in tree.rglob("*") if path.is_file()):
        target = site / source.relative_to(tree)
        if target.name.startswith("_"):  # a Python module
            target = target.with_name(target.stem + sysconfig.get_config_var("EXT_SUFFIX"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)


def environment() -> dict[str, str]:
    """That of the tests."""
    # The C++ library before those that throw exceptions: the sanitizer looks for what it intercepts when it starts.
    preloaded = [library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]
    return {
        **os.environ,
        "LD_PRELOAD": ":".join(preloaded),
        "ASAN_OPTIONS": ":".join(f"{name}={value}" for name, value in ASAN_OPTIONS.items()),
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={REPORTS / 'report'}",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


# Leaks that are known, by a function on their stack.
KNOWN_LEAKS = {
    "PlatformManager::PlatformWithName": "loader.cc: the error of the usual answer, once",
    "TF_LoadLibrary": "TensorFlow's, one for each library of ops",
}


def findings(report: str) -> list[str]:
    """The parts of the sanitizers' reports that are about this project's code: errors, and leaks that it allocated."""
    found = []
    ours = re.compile(r"tensorflow_plugin/|libtensorflow_xpu|_interop_|_native")
    for part in re.split(r"\n(?===\d+==ERROR: )", report):
        if "ERROR: LeakSanitizer" not in part:
            found += [part] if part.strip("=\n ") else []
            continue
        leaks = re.split(r"\n(?=(?:Direct|Indirect) leak of )", part)[1:]
        found += [leak for leak in leaks if ours.search(leak) and not any(known in leak for known in KNOWN_LEAKS)]
    return found


def test(arguments: list[str]) -> int:
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    if not arguments or arguments[0] == "--part":
        arguments = ["--part", f"{int(time.time() // 86400) % PARTS}/{PARTS}", *arguments]  # the last one holds
        arguments += ["-n", "2", "--dist", "worksteal", *TESTS]
    print(f"tools/sanitized.py: pytest {' '.join(arguments)}", flush=True)
    # Without pytest's handler of signals: the sanitizer's says more. A report of undefined behaviour before the process
    # ends goes to stderr, whatever log_path says, and must not end in pytest's hands.
    command = [str(VENV / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:faulthandler", "-p", "tests.support.leaks"]
    command += ["--capture=sys", *arguments]
    status = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    found = [finding for path in sorted(REPORTS.iterdir()) for finding in findings(path.read_text(errors="replace"))]
    for finding in found:
        print(finding, file=sys.stderr)
    if found:
        print(f"tools/sanitized.py: {len(found)} findings", file=sys.stderr)
    return status or bool(found)


def main() -> int:
    if sys.argv[1:] == ["build"]:
        build()
        return 0
    if sys.argv[1:2] == ["test"]:
        return test(sys.argv[2:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
