"""`python -m benchmarks dlpack`: what an exchange of a tensor costs, written to docs/dlpack.md with a plot.

One process, batches of calls that alternate between the libraries, the minimum and the median over the batches. Only
tvm_ffi with stock TensorFlow needs a process of its own: it remembers for good how a type exchanges tensors.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sysconfig
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE, PLOT = ROOT / "docs" / "dlpack.md", ROOT / "docs" / "dlpack.svg"
BATCHES, COUNT = 300, 100
COLUMNS = ("TensorFlow, ours", "on XPU, ours", "TensorFlow, stock", "PyTorch")
SHAPE = (32, 64)

Times = tuple[float, float]  # minimum and median, in ns


def summary(ns: list[float]) -> Times:
    return min(ns), statistics.median(ns)


def time_python(calls: dict[str, Callable[[], object]], count: int = 50) -> dict[str, Times]:
    """The time of each call, in batches that take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(BATCHES):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            for _ in range(count):
                call()
            times[name].append((time.perf_counter_ns() - start) / count)
    return {name: summary(values) for name, values in times.items()}


def compile_loops() -> ctypes.PyDLL:
    """The loops in C++, compiled into build/."""
    include = pathlib.Path(importlib.util.find_spec("tvm_ffi").origin).parent / "include"
    library = ROOT / "build" / "dlpack_loops.so"
    library.parent.mkdir(exist_ok=True)
    command = ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", f"-I{sysconfig.get_path('include')}", f"-I{include}"]
    subprocess.run([*command, str(ROOT / "benchmarks" / "dlpack_loops.cc"), "-o", str(library)], check=True)
    return ctypes.PyDLL(str(library))


def table_of(tensor_type: type) -> ctypes.c_void_p:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(pointer(tensor_type.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def time_c(loops: ctypes.PyDLL, function: str, arguments: dict[str, list]) -> dict[str, Times]:
    """The time of one of the loops for each list of leading arguments, in batches that take turns."""
    times: dict[str, list[float]] = {name: [] for name in arguments}
    rounds = 10
    out = (ctypes.c_double * (BATCHES // rounds))()
    for _ in range(rounds):
        for name, leading in arguments.items():
            if getattr(loops, function)(*leading, BATCHES // rounds, COUNT, out) != 0:
                raise RuntimeError(f"{function} failed for {name}")
            times[name] += list(out)
    return {name: summary(values) for name, values in times.items()}


def stock_tvm_ffi() -> dict[str, Times]:
    """tvm_ffi with TensorFlow as it is; run in a process of its own."""
    import tensorflow as tf
    import tvm_ffi

    with tf.device("/cpu:0"):
        a, b, c = (tf.random.stateless_normal(SHAPE, [1, i]) for i in range(3))
    nop = tvm_ffi.get_global_func("testing.nop")
    return time_python({"call": lambda: nop(a, b, c), "import": lambda: tvm_ffi.from_dlpack(a)})


def measure() -> dict[str, dict[str, Times]]:
    """By what is measured, then by column."""
    import jax
    import numpy as np
    import tensorflow as tf
    import torch
    import tvm_ffi
    from tensorflow.python.framework import ops

    from benchmarks.measure import in_process
    from tensorflow_xpu import dlpack

    ours, on_xpu, stock, pytorch = COLUMNS
    with tf.device("/cpu:0"):
        a, b, c = (tf.random.stateless_normal(SHAPE, [1, i]) for i in range(3))
    with tf.device("/xpu:0"):
        x, y, z = (tf.random.stateless_normal(SHAPE, [1, i]) for i in range(3))
    p, q, r = (torch.randn(SHAPE) for _ in range(3))
    x.numpy()  # all that is queued is done
    results: dict[str, dict[str, Times]] = {}

    loops = compile_loops()
    tf_api, torch_api = table_of(ops.EagerTensor), table_of(torch.Tensor)
    objects = {ours: (tf_api, a), on_xpu: (tf_api, x), pytorch: (torch_api, p)}
    for label, function in (
        ("C: dltensor_from_py_object", "time_dltensor_from"),
        ("C: managed_tensor_from_py_object, deleter", "time_managed_from"),
        ("C: managed_tensor_allocator, deleter", "time_allocator"),
        ("C: current_work_stream", "time_current_work_stream"),
    ):
        arguments = {name: [api, ctypes.py_object(tensor)] for name, (api, tensor) in objects.items()}
        if function in ("time_allocator", "time_current_work_stream"):
            del arguments[on_xpu]  # the same
        results[label] = time_c(loops, function, arguments)
    theirs = ctypes.py_object(p)
    results["C: managed_tensor_to_py_object"] = time_c(
        loops,
        "time_managed_to",
        {ours: [tf_api, torch_api, theirs], pytorch: [torch_api, torch_api, theirs]},
    )

    nop = tvm_ffi.get_global_func("testing.nop")
    results["tvm_ffi call with three tensors"] = time_python(
        {ours: lambda: nop(a, b, c), on_xpu: lambda: nop(x, y, z), pytorch: lambda: nop(p, q, r)}
    )
    calls: dict[str, dict[str, Callable[[], object]]] = {
        "__dlpack__()": {ours: a.__dlpack__, on_xpu: x.__dlpack__, pytorch: p.__dlpack__},
        "numpy.from_dlpack": {
            ours: lambda: np.from_dlpack(a),
            on_xpu: lambda: np.from_dlpack(x),
            pytorch: lambda: np.from_dlpack(p),
        },
        "torch.from_dlpack": {ours: lambda: torch.from_dlpack(a), on_xpu: lambda: torch.from_dlpack(x)},
        "jax.dlpack.from_dlpack": {
            ours: lambda: jax.dlpack.from_dlpack(a),
            on_xpu: lambda: jax.dlpack.from_dlpack(x),
            pytorch: lambda: jax.dlpack.from_dlpack(p),
        },
        "tvm_ffi.from_dlpack": {
            ours: lambda: tvm_ffi.from_dlpack(a),
            on_xpu: lambda: tvm_ffi.from_dlpack(x),
            pytorch: lambda: tvm_ffi.from_dlpack(p),
        },
        "from_dlpack(PyTorch's tensor)": {
            ours: lambda: dlpack.from_dlpack(p),
            on_xpu: lambda: dlpack.from_dlpack(p, "/xpu:0"),
        },
    }
    for label, by_column in calls.items():
        results[label] = time_python(by_column)
    dlpack.uninstall()
    take = tf.experimental.dlpack.from_dlpack
    for label, call in {
        "__dlpack__()": lambda: a.__dlpack__(),
        "numpy.from_dlpack": lambda: np.from_dlpack(a),
        "torch.from_dlpack": lambda: torch.from_dlpack(a),
        "jax.dlpack.from_dlpack": lambda: jax.dlpack.from_dlpack(a),
        "from_dlpack(PyTorch's tensor)": lambda: take(p.__dlpack__()),
    }.items():
        results[label][stock] = time_python({stock: call})[stock]
    dlpack.install()
    alone = json.loads(in_process("benchmarks.dlpack").splitlines()[-1])
    results["tvm_ffi call with three tensors"][stock] = tuple(alone["call"])
    results["tvm_ffi.from_dlpack"][stock] = tuple(alone["import"])
    return results


def markdown(results: dict[str, dict[str, Times]]) -> str:
    lines = ["| ns, minimum (median) | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for label, by_column in results.items():
        cells = [f"{by_column[c][0]:.0f} ({by_column[c][1]:.0f})" if c in by_column else "" for c in COLUMNS]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results: dict[str, dict[str, Times]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dlpack"
    from matplotlib import pyplot

    labels = list(results)
    colors = ("#0a6", "#6c9", "#bbb", "#e63")
    figure, axes = pyplot.subplots(figsize=(9, 0.62 * len(labels) + 1))
    for i, column in enumerate(COLUMNS):
        places = [n + 0.2 * i for n, label in enumerate(labels) if column in results[label]]
        minima = [results[label][column][0] for label in labels if column in results[label]]
        axes.barh(places, minima, height=0.2, color=colors[i], label=column)
    axes.set_yticks([n + 0.3 for n in range(len(labels))], labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("ns per tensor or call, minimum (logarithmic)")
    axes.legend(loc="lower right", fontsize=8)
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})


def run() -> None:
    """Measures, prints the table and writes it and the plot into docs/."""
    from benchmarks.measure import put

    results = measure()
    table = markdown(results)
    print(table)
    plot(results)
    put(PAGE, table)
    print(f"wrote {PAGE} and {PLOT}")


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    print(json.dumps(stock_tvm_ffi()))
