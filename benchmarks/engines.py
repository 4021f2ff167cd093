"""The engines that run trained models: each takes the same Keras model, and NumPy arrays in and out.

`python -m benchmarks.engines export MODEL BATCH FOLDER` writes the files that engines load, by Keras's own exporters.
It prints what each of them said if it could not.

`python -m benchmarks.engines ENGINE MODEL BATCH FOLDER` is a process that runs a model. It makes a turn of calls for
each line of its input. For the line "profile" it counts the operations of one call.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: A call of the model: arrays in, its first output as an array.
Run = Callable[[list[np.ndarray]], np.ndarray]

CORES = len(os.sched_getaffinity(0))
#: Seconds of a turn, and calls at most.
TURN, MOST_CALLS = 0.4, 2000


def first(outputs: Any) -> Any:
    """The first of a model's outputs."""
    while isinstance(outputs, (list, tuple, dict)):
        outputs = next(iter(outputs.values())) if isinstance(outputs, dict) else outputs[0]
    return outputs


def built(model: str, batch: int, folder: pathlib.Path) -> Any:
    """The Keras model with its weights."""
    from benchmarks.inference_models import MODELS

    made = MODELS[model].make()[0]
    made.load_weights(folder / FILES["keras"])
    return made


def tensorflow(model: str, batch: int, folder: pathlib.Path, jit_compile: bool = False) -> Run:
    import tensorflow as tf

    saved = folder / "saved"
    if saved.exists():
        served = tf.saved_model.load(str(saved))
        return lambda arguments: served.serve(*arguments).numpy()
    loaded = built(model, batch, folder)
    call = tf.function(lambda *arguments: first(loaded(list(arguments))), jit_compile=jit_compile)
    return lambda arguments: call(*arguments).numpy()


def tensorflow_with_xla(model: str, batch: int, folder: pathlib.Path) -> Run:
    return tensorflow(model, batch, folder, jit_compile=True)


def jax(model: str, batch: int, folder: pathlib.Path) -> Run:
    import jax

    loaded = built(model, batch, folder)
    variables = [[v.value for v in group] for group in (loaded.trainable_variables, loaded.non_trainable_variables)]
    call = jax.jit(lambda variables, arguments: first(loaded.stateless_call(*variables, arguments, training=False)[0]))
    return lambda arguments: np.asarray(call(variables, arguments))


def pytorch(model: str, batch: int, folder: pathlib.Path, compiled: bool = False) -> Run:
    import torch

    loaded = built(model, batch, folder)
    call = torch.compile(loaded) if compiled else loaded

    def run(arguments: list[np.ndarray]) -> np.ndarray:
        with torch.inference_mode():
            return first(call([torch.from_numpy(a) for a in arguments])).numpy()

    return run


def pytorch_compiled(model: str, batch: int, folder: pathlib.Path) -> Run:
    return pytorch(model, batch, folder, compiled=True)


def openvino(model: str, batch: int, folder: pathlib.Path) -> Run:
    import openvino

    # By itself it computes in bfloat16 where the processor can. The other engines compute in the model's float32.
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": CORES, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(folder / "model.xml", "CPU", options).create_infer_request()
    return lambda arguments: first(list(request.infer(arguments).values()))


def onnx_runtime(model: str, batch: int, folder: pathlib.Path) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = CORES
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    return lambda arguments: first(session.run(None, dict(zip(names, arguments, strict=True))))


def litert(model: str, batch: int, folder: pathlib.Path) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(folder / "model.tflite"), num_threads=CORES)
    takes = sorted(interpreter.get_input_details(), key=lambda detail: detail["name"])
    wanted = json.loads((folder / "arguments.json").read_text())
    for detail, shape in zip(takes, wanted, strict=True):
        if list(detail["shape"]) != shape:
            interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    given = [detail["index"] for detail in takes]
    result = interpreter.get_output_details()[0]["index"]

    def run(arguments: list[np.ndarray]) -> np.ndarray:
        for index, argument in zip(given, arguments, strict=True):
            interpreter.set_tensor(index, argument)
        interpreter.invoke()
        return interpreter.get_tensor(result)

    return run


@dataclasses.dataclass(frozen=True)
class Engine:
    """load: makes the model ready; package: what its process imports first; environment: of its process; needs: the
    exporter's format that it loads.
    """

    load: Callable[[str, int, pathlib.Path], Run]
    package: str
    environment: dict[str, str]
    needs: str = "keras"


XPU = "XPU"
STOCK = {"KERAS_BACKEND": "tensorflow", "TF_XPU_DISABLE": "1"}
ENGINES = {
    XPU: Engine(tensorflow, "tensorflow", {"KERAS_BACKEND": "tensorflow"}),
    "OpenVINO": Engine(openvino, "openvino", {}, "openvino"),
    "ONNX Runtime": Engine(onnx_runtime, "onnxruntime", {}, "onnx"),
    "LiteRT": Engine(litert, "ai_edge_litert.interpreter", {}, "litert"),
    "TensorFlow": Engine(tensorflow, "tensorflow", STOCK),
    "TensorFlow with XLA": Engine(tensorflow_with_xla, "tensorflow", STOCK),
    "JAX": Engine(jax, "jax", {"KERAS_BACKEND": "jax"}),
    "PyTorch": Engine(pytorch, "torch", {"KERAS_BACKEND": "torch"}),
    "PyTorch, compiled": Engine(pytorch_compiled, "torch", {"KERAS_BACKEND": "torch"}),
}
#: The exporters' formats and the files that they write.
FILES = {"keras": "model.weights.h5", "openvino": "model.xml", "onnx": "model.onnx", "litert": "model.tflite"}


def export(model: str, batch: int, folder: pathlib.Path) -> dict[str, str]:
    """Writes the model in each format, with its arguments; by format, why it could not."""
    from benchmarks.inference_models import make

    made, arguments = make(model, batch)
    np.savez(folder / "arguments.npz", *arguments)
    (folder / "arguments.json").write_text(json.dumps([argument.shape for argument in arguments]))
    failed = {}
    for format, file in FILES.items():
        try:
            if format == "keras":
                made.save_weights(folder / file)
            else:
                made.export(str(folder / file), format=format, verbose=False)
        except Exception as error:  # of any exporter, whatever it says: the table shows that it could not
            failed[format] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return failed


def held(what: str) -> int:
    """Bytes of this process: "VmRSS" now, "VmHWM" at most since it began."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(what)).split()[1]) * 1024


def turn(run: Run, arguments: list[np.ndarray]) -> list[float]:
    """Seconds of each call, as many as fit into a turn."""
    times, end = [], time.perf_counter() + TURN
    while len(times) < MOST_CALLS and (len(times) < 3 or time.perf_counter() < end):
        start = time.perf_counter()
        run(arguments)
        times.append(time.perf_counter() - start)
    return times


def serve(name: str, model: str, batch: int, folder: pathlib.Path) -> None:
    """The process of an engine. Its first line says how long the import took, the result, and its memory."""
    start = time.perf_counter()
    engine = ENGINES[name]
    importlib.import_module(engine.package)
    imported, before = time.perf_counter() - start, held("VmRSS")
    with np.load(folder / "arguments.npz") as file:
        arguments = [np.ascontiguousarray(file[key]) for key in file.files]
    run = engine.load(model, batch, folder)
    size = float(np.sqrt(np.mean(np.square(run(arguments).astype(np.float64)))))
    print(json.dumps({"imported": imported, "loss": size, "bytes": held("VmHWM") - before}), flush=True)
    for line in sys.stdin:
        if line == "profile\n":
            from benchmarks.race import profiled

            print(json.dumps(profiled(lambda: run(arguments), 1)), flush=True)
        else:
            print(json.dumps({"times": turn(run, arguments), "bytes": held("VmHWM") - before}), flush=True)


if __name__ == "__main__":
    what, model, batch, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])
    if what == "export":
        print(json.dumps(export(model, batch, folder)), flush=True)
    else:
        serve(what, model, batch, folder)
