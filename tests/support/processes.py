"""Fresh processes and threads for tests."""

import concurrent.futures
import functools
import json
import os
import subprocess
import sys
import textwrap

from tests.support.forkserver import ForkServer
from tests.support.installed import SITE


class Outcome:
    """How a process ended and what it said."""

    def __init__(self, completed):
        self.returncode = completed.returncode
        self.stdout, self.stderr = completed.stdout, completed.stderr
        self.warnings = [line for line in self.stderr.splitlines() if line.startswith("tensorflow_xpu: ")]

    def __repr__(self):
        return f"exit code {self.returncode}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr[-4000:]}"

    @property
    def json(self):
        """The last line of stdout, read as JSON."""
        return json.loads(self.stdout.strip().splitlines()[-1])


def environment_of(variables):
    """The environment of a process on the backend that is under test, with these variables."""
    dropped = ("PYTHON", "PYTEST", "TF_XPU_DISABLE", "TF_XPU_DEVICE_COUNT", "TF_XPU_MEMORY_LIMIT")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**inherited, "TF_CPP_MIN_LOG_LEVEL": "2", **dict(variables)}


def run(*arguments, environment=(), python=sys.executable, timeout=300, cwd=None):
    """Runs Python with these arguments."""
    completed = subprocess.run(
        [str(python), *map(str, arguments)],
        env=environment_of(environment),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        cwd=cwd,
        check=False,
    )
    return Outcome(completed)


# TensorFlow imports these if it can, though few programs use them.
IMPORTED_BY_TENSORFLOW = ("keras", "jax")


@functools.cache
def fork_server():
    """The one of this process, whose environment has the variables that no plugin reads."""
    return ForkServer({name: value for name, value in environment_of(()).items() if not read_by_plugin(name)}, SITE)


def read_by_plugin(name):
    return name.startswith("TF_XPU_")


def in_threads(work, count=4):
    """Calls work(0), work(1), ... side by side, in threads of their own; raises what one of them raises."""
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        for called in [threads.submit(work, i) for i in range(count)]:
            called.result()


def run_code(code, *, environment=(), python=sys.executable, timeout=300, cwd=None):
    """Runs Python code in a process of its own, forked from one that has imported TensorFlow where that will do."""
    code, environment = textwrap.dedent(code), environment_of(environment)
    unused = [name for name in IMPORTED_BY_TENSORFLOW if name not in code]
    code = f"import sys; sys.modules.update(dict.fromkeys({unused}))\n{code}"
    same = {name: value for name, value in environment.items() if not read_by_plugin(name)}
    if python == sys.executable and len(unused) == len(IMPORTED_BY_TENSORFLOW) and same == fork_server().environment:
        completed = fork_server().run(code, environment, timeout, cwd)
        if completed is not None:
            return Outcome(completed)
    return run("-c", code, environment=environment, python=python, timeout=timeout, cwd=cwd)
