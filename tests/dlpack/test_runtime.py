"""DLPack where time matters: queued work, threads, garbage collection, the end of the process; and other processes."""

import ctypes
import gc
import os
import random
import re
import subprocess

import numpy as np
import pytest
import tensorflow as tf
import torch

from tensorflow_xpu import dlpack
from tests.support.dlpack_c import HOST, PLACES, Producer, opened, reachable
from tests.support.installed import MINOR, ROOT, TENSORFLOW
from tests.support.processes import in_threads, run_code


def test_export_waits_for_queued_work(xpu_device):
    with tf.device("/xpu:0"):
        a = tf.random.stateless_normal([384, 384], [1, 2]) / 20
        for _ in range(10):
            x = a
            for _ in range(12):
                x = tf.matmul(x, a)
            view = torch.from_dlpack(reachable(x)).clone()
            np.testing.assert_array_equal(view.numpy(), x.numpy())


def test_imported_memory_lasts_until_queued_work_is_done(xpu_device):
    """The deleter spoils the memory, so a kernel that ran after it would compute something else."""
    n, shared = 384, PLACES["/xpu:0"] == HOST
    for _ in range(5):
        producer = Producer((n, n), nbytes=4 * n * n)
        values = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32) / 20
        producer.write(values.tobytes())
        count = producer._delete

        def spoil(argument, producer=producer, count=count):
            ctypes.memset(producer.aligned, 0xFF, 4 * n * n)
            count(argument)

        deleter = type(producer._deleter)(spoil)
        producer.managed.deleter = deleter
        with tf.device("/xpu:0"):
            x = dlpack.from_dlpack(producer.capsule(), device="/xpu:0", copy=False if shared else None)
            y = tf.eye(n)
            for _ in range(6):
                y = tf.matmul(y, x)
            del x
        gc.collect()
        assert producer.deleted == 1
        np.testing.assert_allclose(y.numpy(), np.linalg.matrix_power(values.astype(np.float64), 6), atol=1e-3)


@pytest.mark.host_only
def test_threads_and_garbage(xpu_device):
    """Tensors go in and out on eight threads and die on others, while the collector runs."""
    producers, handed, failures = [], [], []

    def work(seed):
        try:
            generator = random.Random(seed)
            for i in range(120):
                device = generator.choice(["/cpu:0", "/xpu:0"])
                producer = Producer((3, 1 + i % 40), strides=generator.choice([None, (1, 3)]))
                producer.write(np.arange(120, dtype=np.float32).tobytes())
                producers.append(producer)
                tensor = dlpack.from_dlpack(producer.capsule(), device=device)
                view = np.from_dlpack(reachable(tensor))
                assert view[0, 0] == 0
                with tf.device(device):
                    doubled = tensor + tensor
                assert torch.from_dlpack(reachable(doubled))[2, 0] == 2 * view[2, 0]
                handed.append([tensor, view, doubled.__dlpack__(), doubled])
                while len(handed) > 20:
                    handed.pop(0)
                if i % 40 == seed:
                    gc.collect()
        except BaseException as error:
            failures.append(error)

    in_threads(work, 8)
    assert failures == []
    handed.clear()
    gc.collect()
    assert [producer.deleted for producer in producers] == [1] * len(producers)


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_unused_capsules_leak_nothing(xpu_device):
    tensor = tf.zeros([1 << 20]) + 1.0

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def use():
        for _ in range(300):
            tensor.__dlpack__()
            tensor.__dlpack__(max_version=(1, 0), copy=True)
            dlpack.from_dlpack(tensor, copy=True)

    use()
    before = resident()
    use()
    assert resident() - before < 64 << 20


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_malformed_tensors():
    """Nonsense in every field: an exception that says which, or a tensor that can be read; the deleter runs once."""
    generator = random.Random(5)
    dims = [0, 1, 2, 3, 5, -1, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63)]
    steps = [0, 1, 2, 5, -1, 1 << 62, -(1 << 63)]
    accepted = 0
    for _ in range(3000):
        rank = generator.randrange(5)
        shape = [generator.choice(dims[:5] if generator.random() < 0.8 else dims) for _ in range(rank)]
        strides = [generator.choice(steps) for _ in range(rank)] if generator.random() < 0.5 else None
        fields = {}
        if generator.random() < 0.1:
            fields["ndim"] = generator.choice([-1, 255, 1 << 30])
        if generator.random() < 0.1:
            fields["lanes"] = generator.choice([0, 2, 4])
        if generator.random() < 0.1:
            fields["with_shape"] = False
        if generator.random() < 0.1:
            fields["data"] = 0
        if generator.random() < 0.1:
            fields["device"] = (generator.choice([0, 2, 8, 12, 13, 99]), generator.choice([0, 1, -1]))
        if generator.random() < 0.1:
            fields["byte_offset"] = generator.choice([4, 7, (1 << 64) - 1])
        legacy = generator.random() < 0.3
        if not legacy and generator.random() < 0.1:
            fields["version"] = generator.choice([(2, 0), (0, 8)])
        if not legacy and generator.random() < 0.1:
            fields["flags"] = generator.randrange(16)
        dtype = (2, 32) if generator.random() < 0.7 else (generator.randrange(20), generator.choice([1, 4, 6, 8, 64]))
        try:
            reach = sum(abs(s) * max(0, d - 1) for d, s in zip(shape, strides or [])) * 16
            if reach > 1 << 11 and all(0 <= d < 100 for d in shape) and abs(reach) < 1 << 48:
                continue  # a lie about the memory's extent, which nobody can see
            producer = Producer(shape, dtype, strides=strides, legacy=legacy, nbytes=1 << 16, **fields)
            if any(s < 0 for s in strides or []):
                producer.managed.dl_tensor.data = producer.managed.dl_tensor.data and producer.aligned + (1 << 15)
            huge = len(shape) > 0 and all(d > 0 for d in shape) and np.prod([float(d) for d in shape]) > 1 << 11
            if huge and "data" not in fields and all(d > 0 for d in shape):
                continue
            tensor = dlpack.from_dlpack(producer.capsule(), device=generator.choice([None, "/cpu:0", "/xpu:0"]))
        except (BufferError, MemoryError) as error:
            assert str(error)
        else:
            accepted += 1
            if tensor.shape.num_elements() > 0:
                tensor.numpy()
            del tensor
        assert producer.deleted == 1
    assert accepted > 300


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_a_fresh_process(xpu_device):
    """The order of imports, the context, a pending Python function, and the end with everything still alive."""
    outcome = run_code(
        """
        import sys, threading, time
        import tensorflow_xpu
        assert "tensorflow" not in sys.modules
        import tensorflow as tf
        from tensorflow.python.eager import context
        from tensorflow.python.framework import ops
        assert hasattr(ops.EagerTensor, "__dlpack_c_exchange_api__")
        assert tensorflow_xpu.dlpack.c_api_missing is None, tensorflow_xpu.dlpack.c_api_missing
        assert context.context()._context_handle is None, "the context was initialised by an import"
        import numpy as np, torch
        first = tensorflow_xpu.dlpack.from_dlpack(torch.arange(64.0))
        assert first.numpy().sum() == 2016

        # The function needs the interpreter's lock to finish: whoever waits with it waits for ever.
        tf.config.experimental.set_synchronous_execution(False)
        with tf.device("/cpu:0"):
            def slow(x):
                time.sleep(0.3)
                return x * 2
            pending = tf.py_function(slow, [tf.ones([8])], tf.float32)
            assert np.from_dlpack(pending).tolist() == [2.0] * 8
            failing = tf.py_function(lambda x: 1 / 0, [tf.ones([8])], tf.float32)
            try:
                failing.__dlpack__()
            except tf.errors.OpError as error:
                assert "division by zero" in str(error)
            else:
                raise AssertionError("no error")
        tf.experimental.async_clear_error()
        tf.config.experimental.set_synchronous_execution(True)

        # Not of PyTorch's tensors: in such a thread it aborts the process by itself, even with torch.ones(64).
        source = np.ones(64, np.float32)
        def for_ever():
            while True:
                np.from_dlpack(tensorflow_xpu.dlpack.from_dlpack(source, "/xpu:0") + 1)
        threading.Thread(target=for_ever, daemon=True).start()
        with tf.device("/xpu:0"):
            big = tf.random.normal([500, 500])
            kept = [torch.from_dlpack(big), np.from_dlpack(big + 1), (big + 2).__dlpack__(), big]
            kept.append(tensorflow_xpu.dlpack.from_dlpack(np.ones([500, 500], np.float32), "/xpu:0"))
            kept.append(tf.matmul(kept[-1], big))
        time.sleep(0.2)
        print("end", flush=True)
        """,
        timeout=120,
    )
    assert outcome.stdout.split() == ["end"], outcome
    assert outcome.returncode == 0, outcome


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_the_interpreter_ends_under_threads(xpu_device):
    """Python 3.11 unwinds threads that ask for its lock then; C++ that may not be unwound would abort the process."""
    outcome = run_code(
        """
        import threading, time
        import numpy as np, tensorflow as tf, tensorflow_xpu
        from tensorflow_xpu import dlpack
        source = np.ones(1 << 16, np.float32)
        class InPython:
            def __dlpack__(self, **arguments):
                for _ in range(100):
                    pass
                return source.__dlpack__(**arguments)
            def __dlpack_device__(self):
                return (1, 0)
        def without_the_lock():
            while True:
                np.from_dlpack(dlpack.from_dlpack(source, "/xpu:0"))
        def in_python():
            while True:
                dlpack.from_dlpack(InPython(), "/xpu:0")
        for work in 2 * [without_the_lock, in_python]:
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        """
    )
    assert outcome.returncode == 0, outcome


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_isolated_memory(xpu_device):
    """Device memory that the host cannot touch is an extension device's, and is copied on demand."""
    outcome = run_code(
        """
        import ctypes, numpy as np, tensorflow as tf, torch, tensorflow_xpu
        from tensorflow.python.framework import ops
        from tensorflow_xpu import dlpack
        from tests.support.dlpack_c import *
        from tests.dlpack.test_c_api import allocate
        EXT, HOST = (EXT_DEV, 1), (CPU, 0)
        api = api_of(ops.EagerTensor)
        with tf.device("/xpu:1"):
            x = tf.range(64, dtype=tf.float32) * 2
        assert x.__dlpack_device__() == EXT
        device = opened(x.__dlpack__()).dl_tensor.device
        assert (device.device_type, device.device_id) == EXT

        # To the host: a copy, if that is allowed.
        copied = opened(x.__dlpack__(dl_device=HOST, max_version=(1, 0)))
        assert copied.flags == IS_COPIED and copied.dl_tensor.device.device_type == CPU
        for theirs in (torch.from_dlpack(x.__dlpack__(dl_device=HOST)), np.from_dlpack(x, device="cpu")):
            assert np.array_equal(np.asarray(theirs), np.arange(64) * 2)
        try:
            x.__dlpack__(dl_device=HOST, copy=False)
        except BufferError as error:
            assert "the host cannot address" in str(error)
        else:
            raise AssertionError
        # On the device: another tensor.
        there = opened(x.__dlpack__(copy=True, max_version=(1, 0)))
        assert there.flags == IS_COPIED and there.dl_tensor.data != opened(x.__dlpack__(copy=False)).dl_tensor.data

        # Out and back is the same memory; a copy is not.
        back = dlpack.from_dlpack(x)
        assert back.device.endswith("XPU:1")
        def place(tensor):
            return opened(tensor.__dlpack__(copy=False)).dl_tensor.data
        assert place(back) == place(x)
        assert np.array_equal((back + 1).numpy(), np.arange(64) * 2 + 1)
        moved = dlpack.from_dlpack(x, copy=True)
        assert place(moved) != place(x)
        assert np.array_equal(moved.numpy(), np.arange(64) * 2)
        assert np.array_equal(dlpack.from_dlpack(x, device="/cpu:0").numpy(), np.arange(64) * 2)

        # Host memory onto the device: a copy.
        y = dlpack.from_dlpack(torch.arange(5.0), device="/xpu:1")
        assert y.device.endswith("XPU:1") and y.__dlpack_device__() == EXT
        assert np.array_equal((y + y).numpy(), np.arange(5) * 2)
        try:
            dlpack.from_dlpack(torch.arange(16.0), device="/xpu:1", copy=False)
        except BufferError as error:
            assert "share no memory" in str(error)
        else:
            raise AssertionError

        # The C functions.
        stream = ctypes.c_void_p()
        api.current_work_stream(*EXT, stream)
        assert stream.value
        address, errors = allocate(api, (4, 4), (2, 32), EXT)
        assert not errors
        made = imported(api, DLManagedTensorVersioned.from_address(address))
        assert made.device.endswith("XPU:1") and made.shape == (4, 4)
        view = DLTensor()
        api.dltensor_from(x, view)
        assert view.device.device_type == EXT_DEV
        for bad in (7, -1):
            producer = Producer((4,), device=(EXT_DEV, bad))
            try:
                imported(api, producer.managed)
            except BufferError as error:
                assert "is not that of an XPU" in str(error)
            else:
                raise AssertionError
        print("end")
        """,
        environment={"TF_XPU_ISOLATE_MEMORY": "1", "TF_XPU_DEVICE_COUNT": "2"},
        cwd=ROOT,
    )
    assert outcome.stdout.split() == ["end"], outcome
    assert outcome.returncode == 0, outcome


# Libraries that are loaded before TensorFlow's and replace definitions of those: the version alone, and the parts of
# TensorFlow that the interop module looks into. With the words of the line that says so, and whether the plugin still
# offers the XPU.
PATCHED = MINOR.replace("_", ".") + ".7"
MISMATCHES = {
    "a minor version": ("TF_Version", "2.99.0", "", False),
    "a patch version": ("TF_Version", PATCHED, f"TensorFlow's version is {PATCHED}, not {TENSORFLOW}", True),
    "tensors that are never ready": (
        "_ZNK10tensorflow12TensorHandle7IsReadyEv",
        0,
        "whether its tensor is there is no, not yes",
        True,
    ),
}


@pytest.fixture(params=MISMATCHES)
def mismatch(request, tmp_path):
    """The library to preload, what the line says, and whether there is an XPU."""
    symbol, value, message, has_xpu = MISMATCHES[request.param]
    source = {
        str: f'const char* {symbol}() {{ return "{value}"; }}',
        int: f"int {symbol}(const void*) {{ return {value}; }}",
    }[type(value)]
    library = tmp_path / "mismatch.so"
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)]
    subprocess.run(command, input=f'extern "C" {{ {source} }}', text=True, check=True)
    return str(library), message, has_xpu


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_beside_another_tensorflow(xpu_device, all_hooks, mismatch):
    """Another minor version: through the public API, by copy, without C functions. Another patch version, or another
    TensorHandle: all as ever. One line says so."""
    library, words, has_xpu = mismatch
    outcome = run_code(
        f"""
        import numpy as np, tensorflow as tf, tensorflow_xpu, torch
        from tensorflow_xpu import dlpack
        whole, device = {has_xpu}, "{"/xpu:0" if has_xpu else "/cpu:0"}"
        """
        """
        missing = "built for TensorFlow .*, but 2.99.0 is running"
        import re
        assert dlpack.c_api_missing is None if whole else re.search(missing, dlpack.c_api_missing), dlpack.c_api_missing
        assert bool(tf.config.list_physical_devices("XPU")) == (device == "/xpu:0")
        x = tf.range(6, dtype=tf.float32) + 1
        assert hasattr(type(x), "__dlpack_c_exchange_api__") == whole
        assert x.device.lower().endswith(device[1:])
        for theirs in (np.from_dlpack(x), torch.from_dlpack(x), np.from_dlpack(tf.Variable(x))):
            assert np.array_equal(np.asarray(theirs), np.arange(6) + 1)
        assert np.array_equal(np.from_dlpack(x, copy=True), np.arange(6) + 1)
        with tf.device("/cpu:0"):
            torch.from_dlpack(tf.constant(1)).add_(41)
            assert tf.constant(1).numpy() == 1
        base = np.arange(70, dtype=np.float32)
        for theirs in (torch.arange(64.0)[1:], base[3:], base[::-2], base.reshape(7, 10).T, torch.ones(3).__dlpack__()):
            ours = dlpack.from_dlpack(theirs, device)
            expected = np.ones(3) if ours.shape == (3,) else np.asarray(theirs)
            assert np.array_equal((ours + 0).numpy(), expected)
        for call, kind in (
            (lambda: tf.constant(["a"]).__dlpack__(), BufferError),
            (lambda: tf.constant(1.0).__dlpack__(copy=False), BufferError),
            (lambda: x.__dlpack__(dl_device=(2, 0)), BufferError),
            (lambda: dlpack.from_dlpack(3), TypeError),
        ):
            try:
                call()
            except kind:
                pass
            else:
                raise AssertionError(kind)
        theirs = torch.zeros(64)
        try:
            ours = dlpack.from_dlpack(theirs, device, copy=False)
            theirs.add_(7)
            half = dlpack.from_dlpack(tf.cast(x, tf.bfloat16).__dlpack__(max_version=(1, 0), copy=False), copy=False)
            assert np.array_equal((ours + 0).numpy(), np.full(64, 7)) and half.dtype == tf.bfloat16 and whole
        except BufferError as error:
            assert "copy=False" in str(error) and not whole
        dlpack.uninstall()
        print("end")
        """,
        environment={"LD_PRELOAD": library, "TF_XPU_ISOLATE_MEMORY": "0"},
    )
    assert outcome.stdout.split() == ["end"], outcome
    assert outcome.returncode == 0, outcome
    # Without an XPU the line says why.
    (line,) = outcome.warnings
    assert (f"the hook eager_tensors is off: {words}" in line) == has_xpu, outcome


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_the_documentation_runs(xpu_device, monkeypatch, tmp_path):
    import ninja

    # With what tvm_ffi runs to compile a kernel, and nothing that it compiled before.
    monkeypatch.setenv("PATH", ninja.BIN_DIR, prepend=os.pathsep)
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(tmp_path))
    names = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "dlpack.md").read_text(), re.DOTALL):
        exec(code, names)
    assert names["z"].device.endswith("XPU:0")
    np.testing.assert_allclose(tf.reduce_sum(names["z"], axis=-1).numpy(), np.ones(512), rtol=1e-5)
    assert isinstance(names["doubled"], tf.Tensor)
    np.testing.assert_array_equal(names["doubled"].numpy(), 2 * names["x"].numpy())


def test_the_place_of_a_variable_on_an_xpu(xpu_device):
    with tf.device("/xpu:0"):
        variable = tf.Variable(tf.ones([100]))
    view = np.from_dlpack(reachable(variable))
    for _ in range(3):
        variable.assign_add(tf.ones([100]))
    assert view.tolist() == [1.0] * 100
    device = opened(variable.__dlpack__(max_version=(1, 0))).dl_tensor.device
    assert (device.device_type, device.device_id) == PLACES["/xpu:0"]
    assert torch.from_dlpack(reachable(variable)).sum() == 400
