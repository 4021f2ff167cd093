"""Serves a SavedModel on /xpu:0: requests of several threads, each by itself, and gathered into batches.

A request is one example. Answered one by one, requests of all threads share the device's cores. A `Batcher` gathers
those that wait at the same time: one call for eight rows costs far less than eight calls for one.
"""

import concurrent.futures
import pathlib
import queue
import sys
import tempfile
import threading
import time

import keras
import numpy as np
import tensorflow as tf


def export(folder: pathlib.Path) -> keras.Model:
    """Any model; Keras writes what a server loads."""
    layers = [keras.layers.Dense(256, "relu"), keras.layers.Dense(256, "relu"), keras.layers.Dense(10, "softmax")]
    model = keras.Sequential([keras.Input((64,)), *layers])
    model.export(folder, verbose=False)
    return model


class Batcher:
    """Answers requests of many threads by calls of at most `most` rows.

    A call takes whatever waits when the one before it ends, and does not wait for more.
    """

    def __init__(self, call, most: int = 8):
        self._call, self._most = call, most
        self._waiting: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def __call__(self, row: np.ndarray) -> np.ndarray:
        """The answer to one example; raises what the model raises."""
        answer: concurrent.futures.Future = concurrent.futures.Future()
        self._waiting.put((row, answer))
        return answer.result()

    def _serve(self) -> None:
        while True:
            taken = [self._waiting.get()]
            while len(taken) < self._most and not self._waiting.empty():
                taken.append(self._waiting.get())
            # Always the same number of rows: TensorFlow traces, and the XPU captures, once.
            rows = np.zeros((self._most, *taken[0][0].shape), taken[0][0].dtype)
            for i, (row, _) in enumerate(taken):
                rows[i] = row
            try:
                results = self._call(rows)
            except Exception as error:  # whatever the model raises is the answer to each of them
                for _, answer in taken:
                    answer.set_exception(error)
            else:
                for i, (_, answer) in enumerate(taken):
                    answer.set_result(results[i])


def requests_a_second(answer, rows: np.ndarray, threads: int, expected: np.ndarray) -> float:
    """Sends each row once, from so many threads, and compares the answers."""
    with concurrent.futures.ThreadPoolExecutor(threads) as clients:
        list(clients.map(answer, rows[:threads]))
        start = time.perf_counter()
        answers = list(clients.map(answer, rows))
        seconds = time.perf_counter() - start
    np.testing.assert_allclose(answers, expected, rtol=1e-4, atol=1e-6)
    return len(rows) / seconds


def main(count: int) -> None:
    """Sends so many requests in each way and prints how many a second were answered."""
    rows = np.random.default_rng(0).standard_normal((count, 64)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        model = export(pathlib.Path(folder))
        with tf.device("/cpu:0"):
            expected = model(rows).numpy()
        served = tf.saved_model.load(folder)  # to be kept: it has the variables

    def one_by_one(row):
        return served.serve(row[None]).numpy()[0]

    batched = Batcher(lambda rows: served.serve(rows).numpy())
    for threads in (1, 4):
        for name, answer in (("one by one", one_by_one), ("in batches", batched)):
            rate = requests_a_second(answer, rows, threads, expected)
            print(f"{threads} threads, {name}: {rate:,.0f} requests a second")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
