"""Measures for ``bench --generate``: the tokens per second of a small language model, and what memory allows.

A token of one sequence reads every weight once. So the limit is the speed at which a product of one row reads memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tensorflow_xpu._bench.tasks import _device
from tensorflow_xpu._measure import XPU, seconds, wait
from tensorflow_xpu._worker import TaskError
from tensorflow_xpu.bench import DEVICE, MEMORY, MODES

SIZE = {"vocabulary_size": 8000, "num_layers": 6, "num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048}
PROMPT, NEW = 32, 160  # tokens
WARMUP, ROUNDS = 4, 5  # calls
WIDTH = 4096  # of the matrix that shows how fast memory is


def bandwidth(width: int = WIDTH) -> float:
    """The bytes per second of a product of one row."""
    with tf.device(XPU):
        matrix, row = tf.Variable(tf.ones([width, width])), tf.ones([1, width])
        product = tf.function(lambda: row @ matrix)
        return 4 * width * width / min(seconds(lambda: wait(product())) for _ in range(20))


def generate(mode: str, size: Mapping[str, int], prompt: int = PROMPT, new: int = NEW) -> dict[str, float]:
    """Tokens per second of GPT-2 of this size, greedy, one sequence, and the bytes of weights that a token reads.

    Raises:
        TaskError: if there is no Keras Hub.
    """
    try:
        import keras_hub
    except ImportError as error:
        problem = f"--generate needs Keras Hub, which cannot be imported ({error}): pip install keras-hub"
        raise TaskError(problem) from error
    with tf.device(XPU):
        backbone = keras_hub.models.GPT2Backbone(**size, max_sequence_length=prompt + new)
        model = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
        if mode != "float32":
            model.quantize(mode)
        model.compile(sampler="greedy")
        inputs = {
            "token_ids": np.ones((1, prompt + new), np.int32),
            "padding_mask": np.arange(prompt + new)[None] < prompt,
        }
        times = [seconds(lambda: model.generate(inputs, stop_token_ids=None)) for _ in range(WARMUP + ROUNDS)]
    read = [weight for weight in model.weights if "position" not in weight.path]
    size_of = sum(int(np.prod(weight.shape)) * tf.as_dtype(weight.dtype).size for weight in read)
    return {"tokens_per_second": new / min(times[WARMUP:]), "weight_bytes": size_of}


TASKS: dict[str, Callable[[], Any]] = {
    DEVICE: _device,
    MEMORY: bandwidth,
    **{mode: functools.partial(generate, mode, SIZE) for mode in MODES},
}
