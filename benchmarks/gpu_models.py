"""Models of a size for GPUs, in Keras alone: a process of tools/gpu_check.py.

    KERAS_BACKEND=NAME python -m benchmarks.gpu_models [--jit] [--small] [--rounds N]

Runs each model in float32 and bfloat16. A line of JSON for each says where it ran and how long steps took in each
round. The first call, which compiles, has a time of its own. The line of a model that fails says why, and the others
follow. With --small the models have sizes that a processor can do, to try the program.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import time
from collections.abc import Callable, Iterator

import keras
import numpy as np
from keras import layers

from benchmarks.workloads import Workload, application, images, one_token, prepared, transformer

P = functools.partial
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def digits_network() -> tuple[keras.Model, Callable]:
    """The network of examples/digits_cnn.py."""
    convolution = P(layers.Conv2D, kernel_size=3, padding="same")
    network = [convolution(32), layers.BatchNormalization(momentum=0.9), layers.ReLU()]
    network += [convolution(64), layers.BatchNormalization(momentum=0.9), layers.ReLU()]
    network += [layers.MaxPooling2D(), layers.Dropout(0.25)]
    network += [convolution(128), layers.BatchNormalization(momentum=0.9), layers.ReLU(), layers.Flatten()]
    network += [layers.Dense(128, activation="relu"), layers.Dropout(0.5), layers.Dense(10)]
    return keras.Sequential([keras.Input((8, 8, 1)), *network]), images(8, channels=1)


RESNET, ENCODER = P(application, "ResNet50", 224), P(transformer, 6, 512, 128)
DECODER = P(one_token, blocks=8, width=1024, heads=16, context=512, batch=8)
MODELS = {
    "the demo's network, training": Workload(digits_network, "8x8, three convolutions, batch 128, Adam", 128, 50),
    "Transformer encoder, training": Workload(
        ENCODER, "six blocks of 512, 128 tokens, batch 32, AdamW", 32, 20, "adamw"
    ),
    "ResNet-50, training": Workload(RESNET, "224x224, batch 64, SGD", 64, 8, "sgd"),
    "decoder step": Workload(DECODER, "eight blocks of 1024, 512 tokens kept on the device, batch 8", 8, 20, None),
    "Transformer encoder, inference": Workload(ENCODER, "six blocks of 512, 128 tokens, batch 32", 32, 20, None),
    "ResNet-50, inference": Workload(RESNET, "224x224, batch 64", 64, 8, None),
}
SMALL = {
    "the demo's network, training": Workload(digits_network, "8x8, batch 16", 16, 2),
    "Transformer encoder, training": Workload(P(transformer, 1, 32, 16), "a block of 32", 2, 2, "adamw"),
    "ResNet-50, training": Workload(P(application, "ResNet50", 32), "32x32, batch 2", 2, 1, "sgd"),
    "decoder step": Workload(P(one_token, 1, 32, 2, 16, batch=2), "a block of 32", 2, 2, None),
}


def where() -> str:
    """The device that models run on if nothing else is said."""
    number = keras.ops.convert_to_tensor(np.zeros(1, np.float32)) + 1
    device = number.devices() if keras.config.backend() == "jax" else number.device
    return str(next(iter(device)) if isinstance(device, set) else device).rpartition("/device:")[2]


def measured(models: dict[str, Workload], jit_compile: bool, rounds: int) -> Iterator[dict[str, object]]:
    """A row for each model and policy, as it is done."""
    device = where()
    for name, workload in models.items():
        for policy, of_keras in POLICIES.items():
            keras.utils.clear_session()
            row: dict[str, object] = {"model": name, "type": policy, "size": workload.size, "batch": workload.batch}
            try:
                began = time.perf_counter()
                work = prepared(dataclasses.replace(workload, policy=of_keras), jit_compile)
                _, first = work()
                row |= {"first_call": time.perf_counter() - began, "device": device, "result": first}
                work()  # whatever is compiled or chosen late
                row["seconds"] = [work()[0] for _ in range(rounds)]
            except Exception as error:
                row["failed"] = f"{type(error).__name__}: {error}"[:2000]
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jit", action="store_true", help="compile models: XLA, torch.compile")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for row in measured(SMALL if options.small else MODELS, options.jit, options.rounds):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
