"""Who generates text with GPT-2: Keras Hub on the XPU, on stock TensorFlow and on JAX, and llama.cpp.

`python -m benchmarks.generators PLAN CONTESTANT WEIGHTS FOLDER` is a process that generates. Its first line has the
tokens, and the bytes of the weights that a token reads. It makes a turn for each line of its input. For the line
"bandwidth" it tells how fast a product of one row reads memory.

`python -m benchmarks.generators PLAN export FOLDER` writes the model for llama.cpp, with the weights that all others
have, too. `python -m benchmarks.generators PLAN dense WEIGHTS` is a process that calls dense layers on the XPU, a turn
for each line "WIDTH ROWS".

All are from the package index. Keras Hub is in requirements-models.txt, gguf in requirements-engines.txt. llama.cpp is
compiled for the processor by its installation, a quarter of an hour on two cores:

    CMAKE_ARGS="-DGGML_NATIVE=ON" pip install llama-cpp-python==0.3.36
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import keras
    import keras_hub

CORES = len(os.sched_getaffinity(0))
#: Seconds of a turn.
TURN = 0.4
#: Calls before the first turn; but who has taken so many seconds has done enough.
WARMUP, LONG = 4, 15
#: Keras's modes of quantize(), but the first, and what llama.cpp calls weights of as many bits.
WEIGHTS = {"float32": "F32", "int8": "Q8_0", "int4": "Q4_0"}
#: Embeddings are so many times as large as other random weights, so that a token depends on the one before.
WORDS = 80
#: Of a dense layer's result in 8 bits: the error relative to the one in floats, as root mean squares.
ERROR = 0.03


@dataclasses.dataclass(frozen=True)
class Plan:
    """A model and its task: size, the arguments of Keras Hub's GPT2Backbone; tokens of the prompt, and new ones."""

    size: dict[str, int]
    prompt: int
    new: int

    @property
    def length(self) -> int:
        return self.prompt + self.new

    def tokens(self) -> np.ndarray:
        """The prompt, always the same."""
        return np.random.default_rng(3).integers(0, self.size["vocabulary_size"], self.prompt, np.int32)


#: A call: all new tokens.
Generate = Callable[[], np.ndarray]


def backbone(plan: Plan) -> keras_hub.models.GPT2Backbone:
    """GPT-2 with weights that do not depend on where it runs. Its tokens vary: each makes other ones likely."""
    import keras_hub

    from benchmarks.workloads import same_weights

    made = keras_hub.models.GPT2Backbone(**plan.size, max_sequence_length=plan.length)
    same_weights(made)
    words = made.token_embedding.embeddings
    words.assign(np.asarray(words) * WORDS)
    made.layer_norm.gamma.assign(np.random.default_rng(5).choice(np.float32([-1, 1]), plan.size["hidden_dim"]))
    return made


def bytes_read(model: keras.Model) -> int:
    """The bytes of the weights that a token reads: all but those of positions."""
    from keras.backend import standardize_dtype

    read = [weight for weight in model.weights if "position" not in weight.path]
    return sum(int(np.prod(w.shape)) * np.dtype(standardize_dtype(w.dtype)).itemsize for w in read)


def on_keras(plan: Plan, weights: str, jit_compile: bool) -> tuple[Generate, int]:
    import keras_hub

    model = keras_hub.models.GPT2CausalLM(backbone(plan), preprocessor=None)
    if weights != "float32":
        model.quantize(weights)
    model.compile(sampler="greedy", jit_compile=jit_compile)
    tokens = np.zeros((1, plan.length), np.int32)
    tokens[0, : plan.prompt] = plan.tokens()
    inputs = {"token_ids": tokens, "padding_mask": np.arange(plan.length)[None] < plan.prompt}

    def generate() -> np.ndarray:
        return np.asarray(model.generate(inputs, stop_token_ids=None)["token_ids"])[0, plan.prompt :]

    return generate, bytes_read(model)


def file_of(folder: pathlib.Path, weights: str) -> pathlib.Path:
    return folder / f"{WEIGHTS[weights]}.gguf"


def tensors(plan: Plan, model: keras_hub.models.GPT2Backbone) -> dict[str, np.ndarray]:
    """The weights of the Keras model by the names that llama.cpp has for them, as it wants them: outputs by inputs."""
    width = plan.size["hidden_dim"]
    values = {weight.path: np.asarray(weight, np.float32) for weight in model.weights}
    named = {
        "token_embd.weight": values["token_embedding/embeddings"],
        "position_embd.weight": values["position_embedding/embeddings"],
        "output_norm.weight": values["layer_norm/gamma"],
        "output_norm.bias": values["layer_norm/beta"],
    }
    for layer in range(plan.size["num_layers"]):
        here, there = f"transformer_layer_{layer}", f"blk.{layer}"
        heads = [f"{here}/self_attention/{part}" for part in ("query", "key", "value")]
        named[f"{there}.attn_qkv.weight"] = np.concatenate([values[f"{h}/kernel"].reshape(width, -1).T for h in heads])
        named[f"{there}.attn_qkv.bias"] = np.concatenate([values[f"{head}/bias"].reshape(-1) for head in heads])
        for ours, theirs in (
            ("self_attention/attention_output", "attn_output"),
            ("feedforward_intermediate_dense", "ffn_up"),
            ("feedforward_output_dense", "ffn_down"),
        ):
            bias = values[f"{here}/{ours}/bias"]
            named[f"{there}.{theirs}.weight"] = values[f"{here}/{ours}/kernel"].reshape(-1, bias.size).T
            named[f"{there}.{theirs}.bias"] = bias
        for ours, theirs in (("self_attention_layer_norm", "attn_norm"), ("feedforward_layer_norm", "ffn_norm")):
            named[f"{there}.{theirs}.weight"] = values[f"{here}/{ours}/gamma"]
            named[f"{there}.{theirs}.bias"] = values[f"{here}/{ours}/beta"]
    return named


def export(plan: Plan, folder: pathlib.Path) -> None:
    """Writes the model for llama.cpp, a file for each kind of weights. It has no words: tokens are numbers."""
    import gguf

    named = tensors(plan, backbone(plan))
    for weights, name in WEIGHTS.items():
        writer = gguf.GGUFWriter(file_of(folder, weights), "gpt2")
        writer.add_context_length(plan.length)
        writer.add_embedding_length(plan.size["hidden_dim"])
        writer.add_feed_forward_length(plan.size["intermediate_dim"])
        writer.add_block_count(plan.size["num_layers"])
        writer.add_head_count(plan.size["num_heads"])
        writer.add_layer_norm_eps(1e-5)
        writer.add_vocab_size(plan.size["vocabulary_size"])
        writer.add_tokenizer_model("none")
        kind = gguf.GGMLQuantizationType[name]
        for tensor, value in named.items():
            few = value.ndim == 1 or tensor.startswith("position")  # these stay floats in llama.cpp's own files, too
            value = np.ascontiguousarray(value)
            if few or weights == "float32":
                writer.add_tensor(tensor, value)
            else:
                writer.add_tensor(tensor, gguf.quants.quantize(value, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def on_llama(plan: Plan, weights: str, folder: pathlib.Path) -> tuple[Generate, int]:
    """By llama.cpp's own functions: its Python class does more for each token."""
    import ctypes

    import llama_cpp as llama

    silent = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    llama.llama_backend_init()
    path = file_of(folder, weights)
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        raise RuntimeError(f"llama.cpp cannot load {path.name}")
    options = llama.llama_context_default_params()
    options.n_ctx = options.n_batch = options.n_ubatch = plan.length
    options.n_threads = options.n_threads_batch = CORES
    context = llama.llama_init_from_model(model, options)
    words = plan.size["vocabulary_size"]
    memory = llama.llama_get_memory(context)

    def decode(tokens: np.ndarray) -> int:
        given = (llama.llama_token * len(tokens))(*tokens)
        if code := llama.llama_decode(context, llama.llama_batch_get_one(given, len(tokens))):
            raise RuntimeError(f"llama_decode returns {code}")
        return int(np.ctypeslib.as_array(llama.llama_get_logits_ith(context, -1), (words,)).argmax())

    def generate() -> np.ndarray:
        llama.llama_memory_clear(memory, False)
        made = [decode(plan.tokens())]
        while len(made) < plan.new:
            made.append(decode(np.array(made[-1:])))
        return np.array(made)

    generate.kept = silent  # type: ignore[attr-defined]  # llama.cpp calls it as long as it is loaded
    return generate, path.stat().st_size


def generate_in_turns(plan: Plan, contestant: str, weights: str, folder: pathlib.Path) -> None:
    """The process of a contestant."""
    from benchmarks.race import CONTESTANTS

    if contestant in CONTESTANTS:
        generate, size = on_keras(plan, weights, CONTESTANTS[contestant].jit_compile)
    else:
        generate, size = on_llama(plan, weights, folder)
    tokens, start = generate(), time.perf_counter()
    for _ in range(WARMUP - 1):
        if time.perf_counter() < start + LONG:
            tokens = generate()
    print(json.dumps({"tokens": tokens.tolist(), "bytes": size}), flush=True)
    for line in sys.stdin:
        if line == "bandwidth\n":
            from tensorflow_xpu._bench.generate import bandwidth

            print(json.dumps({"bandwidth": bandwidth()}), flush=True)
        else:
            print(json.dumps({"seconds": turn(generate) / plan.new}), flush=True)


def turn(call: Callable[[], Any]) -> float:
    """Seconds of the fastest call of as many as fit into a turn."""
    times, end = [], time.perf_counter() + TURN
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def dense(weights: str, width: int, rows: int) -> Callable[[], None]:
    """A call of a dense layer as wide as its input. Raises RuntimeError if its result differs from that in floats."""
    import keras
    import tensorflow as tf

    from tensorflow_xpu._measure import wait

    rng = np.random.default_rng(4)
    layer = keras.layers.Dense(width)
    layer.build((rows, width))
    layer.kernel.assign(rng.normal(0, width**-0.5, (width, width)).astype(np.float32))
    given = tf.identity(tf.constant(rng.normal(0, 1, (rows, width)).astype(np.float32)))
    expected = layer(given).numpy()
    if weights != "float32":
        layer.quantize(weights)
    call = tf.function(layer)
    error = float(np.sqrt(np.mean(np.square(call(given).numpy() - expected)) / np.mean(np.square(expected))))
    if error > ERROR:
        raise RuntimeError(f"a layer of {width} for {rows} rows has an error of {error:.2g}; expected at most {ERROR}")
    return lambda: wait(call(given))


def call_in_turns(weights: str) -> None:
    """The process of dense layers."""
    made: dict[str, Callable[[], None]] = {}
    for line in sys.stdin:
        if line not in made:
            made[line] = dense(weights, *map(int, line.split()))
        print(json.dumps({"seconds": turn(made[line])}), flush=True)


if __name__ == "__main__":
    asked, what, *others = sys.argv[1:]
    plan = Plan(**json.loads(asked))
    if what == "export":
        export(plan, pathlib.Path(others[0]))
    elif what == "dense":
        call_in_turns(others[0])
    else:
        generate_in_turns(plan, what, others[0], pathlib.Path(others[1]))
