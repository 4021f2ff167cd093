"""Eager ops on an XPU, run by several Python threads at once."""

import pytest

from tests.support.processes import run_code

# Every thread asks for shapes of its own; TensorFlow hands shapes to the kernels in host memory.
THREADS = """
    import threading
    import tensorflow as tf

    wrong = []

    def work(thread):
        with tf.device("/xpu:0"):
            for i in range(2000):
                shape = [thread + 2, i % 7 + 1]
                for what, result in {
                    "fill": tf.fill(shape, 1.0),
                    "reshape": tf.reshape(tf.ones(shape), shape[::-1])[:, :],
                }.items():
                    expected = shape if what == "fill" else shape[::-1]
                    if result.shape != expected:
                        wrong.append((what, expected, result.shape.as_list()))

    try:
        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    except Exception as error:
        wrong.append(repr(error))
    print(len(wrong), wrong[:3])
"""


@pytest.mark.host_only
def test_threads_keep_their_arguments(xpu_device):
    outcome = run_code(THREADS)
    assert outcome.returncode == 0 and "Exception" not in outcome.stderr, outcome
    assert outcome.stdout.split()[0] == "0", outcome


def test_without_the_hook_nothing_breaks(plugin_site):
    """A TensorFlow whose context is another one: said in a line, and everything else works."""
    path = plugin_site.package / "hooks" / "ops.py"
    path.write_text(path.read_text().replace("Context._initialize_logical_devices", "Context._not_there"))
    outcome = plugin_site.run_code("import tensorflow as tf\nprint(tf.add(1.0, 2.0).device, len(tf.ones(3)))")
    assert outcome.returncode == 0 and "XPU:0 3" in outcome.stdout, outcome
    assert len(outcome.warnings) == 1 and "one thread at a time" in outcome.warnings[0], outcome


def test_a_new_context_is_prepared_too(xpu_device):
    """As tests and multi-worker programs make one."""
    outcome = run_code(
        """
        import tensorflow as tf, tensorflow_xpu
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.eager import context

        calls = []
        original = pywrap_tfe.TFE_ContextSetRunEagerOpAsFunction

        class Counting:
            def __call__(self, *a):
                calls.append(a[1])
                original(*a)

        hook = tensorflow_xpu.hooks.HOOKS[0]
        hook.uninstall()
        pywrap_tfe.TFE_ContextSetRunEagerOpAsFunction = Counting()
        hook.install()
        tf.ones(3)
        context._reset_context()
        tf.ones(3)
        print(calls)
        """
    )
    assert outcome.stdout.strip() == "[False, False]", outcome


def test_sync_devices_waits_for_commands(xpu_device):
    """TensorFlow's own op for devices that it does not know does nothing, and benchmarks would time nothing."""
    outcome = run_code(
        """
        import time
        import tensorflow as tf

        with tf.device("/xpu:0"):
            x = tf.random.normal([64, 64])
            tf.test.experimental.sync_devices()
            start = time.perf_counter()
            y = tf.linalg.matmul(x, x)
            enqueued = time.perf_counter() - start
            tf.test.experimental.sync_devices()
            print(enqueued < 0.5 <= time.perf_counter() - start)
        """,
        environment={"TF_XPU_FAULT": "command=MatMul:delay=600ms"},
    )
    assert outcome.stdout.split() == ["True"], outcome
