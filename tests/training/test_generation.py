"""Generation of text with Keras Hub: the page's example, and the tokens of quantized models."""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorflow_xpu
from tests.conftest import ROOT
from tests.support.requirements import need

pytestmark = [pytest.mark.slow, pytest.mark.without_isolation]

PROMPT, LENGTH, VOCABULARY = 6, 20, 50


@pytest.fixture(autouse=True)
def keras_hub():
    need("keras_hub", file="requirements-models.txt")


def test_the_example_runs(xpu_device):
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "generation.md").read_text(), re.M | re.S)
    names: dict = {}
    exec(compile(example, "docs/generation.md", "exec"), names)
    for tokens in (names["in_floats"], names["quantized"]):
        assert tokens.shape == (1, names["LENGTH"])
        np.testing.assert_array_equal(tokens[0, : names["PROMPT"]], np.arange(1, names["PROMPT"] + 1))


def model_of(mode: str | None):
    import keras_hub

    keras.utils.set_random_seed(2)
    backbone = keras_hub.models.GPT2Backbone(
        vocabulary_size=VOCABULARY,
        num_layers=2,
        num_heads=2,
        hidden_dim=32,
        intermediate_dim=64,
        max_sequence_length=32,
    )
    for weight in backbone.weights:  # so far apart that no rounding decides
        weight.assign(weight * 8.0)
    model = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
    if mode is not None:
        model.quantize(mode)
    model.compile(sampler="greedy")
    return model


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("mode", [None, "int8", "int4"])
def test_tokens_are_the_cpus(xpu_device, mode, batch):
    tokens = np.random.default_rng(0).integers(1, VOCABULARY, (batch, LENGTH)).astype(np.int32)
    tokens[:, PROMPT:] = 0
    known = np.broadcast_to(np.arange(LENGTH) < PROMPT, tokens.shape)
    results = {}
    for device in ("/cpu:0", "/xpu:0"):
        with tf.device(device):
            model = model_of(mode)
            inputs = {"token_ids": tokens, "padding_mask": known}
            # Several calls: what is computed of weights alone is kept from the fourth on.
            results[device] = [model.generate(inputs, stop_token_ids=None)["token_ids"] for _ in range(5)]
    for result in results["/xpu:0"]:
        np.testing.assert_array_equal(result, results["/cpu:0"][0])
    assert len(np.unique(results["/cpu:0"][0][:, PROMPT:])) > 3


@pytest.mark.parametrize("mode", [None, "int8", "int4"])
def test_products_of_a_token_stay_on_the_device(xpu_device, mode):
    tokens = np.ones((1, LENGTH), np.int32)
    inputs = {"token_ids": tokens, "padding_mask": np.arange(LENGTH)[None] < PROMPT}
    with tf.device("/xpu:0"):
        model = model_of(mode)
        with tensorflow_xpu.trace_placement() as report:
            model.generate(inputs, stop_token_ids=None)
    elsewhere = {row.op for row in report.rows() if not row.on_xpu}
    assert not elsewhere & {"MatMul", "BatchMatMulV2", "BatchMatMulV3", "GatherV2", "Softmax", "TemporaryVariable"}, (
        report
    )
    # Ops elsewhere are those of integers in host memory. No value passes to another device in each iteration.
    assert {row.where for row in report.rows() if not row.on_xpu} == {"host"}, report
