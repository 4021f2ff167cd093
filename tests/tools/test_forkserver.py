"""Processes from the fork server are what `python -c` makes."""

import os
import signal
import subprocess

import pytest

from tests.support.installed import LOADER
from tests.support.processes import environment_of, fork_server, run, run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


@pytest.mark.parametrize(
    "code",
    [
        "import os, sys; print(sys.argv, __name__, sys.path[0], os.getcwd())",
        "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)",
        "import os; os.write(1, b'\\xff'); os._exit(4)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "import os, sys; print(os.environ.get('TF_XPU_FAULT'), 'tensor' 'flow' in sys.modules, sys.stdin.read())",
        "import tensorflow as tf; print(tf.__spec__.origin, tf.__loader__.path, tf.config.list_physical_devices())",
        "from tensorflow.python.eager import context; print(context.num_gpus())",
        "import atexit; atexit.register(print, 'at exit')",
    ],
)
def test_ends_and_says_the_same(code, tmp_path):
    options = {"environment": {"TF_XPU_FAULT": "copy:delay=1us", "TF_XPU_DEVICE_COUNT": "2"}, "cwd": tmp_path}
    expected = run("-c", code, **options)
    seen = fork_server().run(code, environment_of(options["environment"]), 100, tmp_path)
    assert (seen.returncode, seen.stdout) == (expected.returncode, expected.stdout)
    if "tensorflow" not in code:  # which writes lines of its own when it is imported
        assert seen.stderr == expected.stderr


def test_the_plugin_is_loaded_by_the_import_and_not_before():
    outcome = run_code(
        f"""
        import os
        def loaded():
            return {LOADER!r} in open("/proc/self/maps").read()
        print(loaded(), len(os.listdir("/proc/self/task")), os.getppid())
        import tensorflow
        print(loaded())
        """
    )
    before, threads, parent, after = outcome.stdout.split()
    assert (before, threads, after) == ("False", "1", "True"), outcome
    assert int(parent) != os.getpid(), "not forked by the server"


def test_an_exception_is_shown():
    outcome = run_code("1 / 0")
    assert outcome.returncode == 1
    assert outcome.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_a_child_that_takes_too_long_is_killed():
    with pytest.raises(subprocess.TimeoutExpired):
        run_code("import os, time; print(os.getpid()); time.sleep(100)", timeout=0.5)
    assert run_code("print(1)").stdout == "1\n"


def test_another_environment_is_another_process():
    outcome = run_code("import os; print(os.environ['OTHER'], os.getppid())", environment={"OTHER": "x"})
    assert outcome.stdout == f"x {os.getpid()}\n"


def test_signals_are_not_ignored():
    outcome = run_code("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert outcome.returncode == -signal.SIGTERM
