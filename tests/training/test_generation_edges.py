"""Odd and bad input of generation: the CPU's tokens or its exception, for small untrained models of Keras Hub."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support.requirements import need

pytestmark = [pytest.mark.slow, pytest.mark.without_isolation]

VOCABULARY, LENGTH, POSITIONS = 50, 10, 16


@pytest.fixture(autouse=True)
def keras_hub():
    need("keras_hub", file="requirements-models.txt")


SIZES = {"vocabulary_size": VOCABULARY, "num_layers": 1, "hidden_dim": 16, "intermediate_dim": 24}
GROUPED = {"num_query_heads": 2, "num_key_value_heads": 1}
MODELS = {
    "GPT2": {"num_heads": 2, "max_sequence_length": POSITIONS},
    "Llama": GROUPED,
    "Mistral": {**GROUPED, "sliding_window": 5},
    "Gemma": {**GROUPED, "head_dim": 8},
    "Qwen": GROUPED,
    "T5": {"num_heads": 2, "dropout": 0},
}


def mask(*prompts: int, length: int = LENGTH) -> np.ndarray:
    """The known tokens of prompts of these lengths."""
    return np.arange(length) < np.reshape(prompts, (-1, 1))


def with_token(token: int) -> np.ndarray:
    tokens = np.ones((1, LENGTH), np.int32)
    tokens[0, 2] = token
    return tokens


def tokens_of(known: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).integers(1, VOCABULARY, known.shape).astype(np.int32) * known


# By name: tokens and which of them are the prompt.
INPUTS = {
    "prompts of several lengths": (tokens_of(mask(3, 6)), mask(3, 6)),
    "a prompt that fills the cache": (tokens_of(mask(LENGTH)), mask(LENGTH)),
    "a prompt that is longer than another's cache": (tokens_of(mask(LENGTH, 2)), mask(LENGTH, 2)),
    "no prompt": (tokens_of(mask(0)), mask(0)),
    "a prompt with holes": (tokens_of(mask(6)), mask(6) & (np.arange(LENGTH) % 3 != 1)),
    "no sequences": (np.zeros((0, LENGTH), np.int32), np.zeros((0, LENGTH), bool)),
    "a cache as long as the positions": (tokens_of(mask(4, length=POSITIONS)), mask(4, length=POSITIONS)),
    "a cache longer than the positions": (tokens_of(mask(4, length=POSITIONS + 3)), mask(4, length=POSITIONS + 3)),
    "a prompt longer than the positions": (tokens_of(mask(18, length=POSITIONS + 3)), mask(18, length=POSITIONS + 3)),
    "a cache of one token": (tokens_of(mask(1, length=1)), mask(1, length=1)),
    "a mask of another length": (tokens_of(mask(4)), mask(4, length=LENGTH - 2)),
    "a token beyond the vocabulary": (with_token(VOCABULARY), mask(4)),
    "a token below the vocabulary": (with_token(-1), mask(4)),
    "an end on one of many tokens": (tokens_of(mask(3, 6)), mask(3, 6), tuple(range(1, VOCABULARY, 3))),
}
CASES = [
    *((name, None) for name in MODELS),
    *(("GPT2", mode) for mode in ("int8", "int4")),
    *((name, "int8") for name in ("Mistral", "Gemma")),
    *((name, "int4") for name in ("Llama", "Qwen", "T5")),
]


def models_of(name: str, mode: str | None) -> dict[str, keras.Model]:
    """The same model on both devices."""
    import keras_hub

    models = {}
    for device in ("/cpu:0", "/xpu:0"):
        with tf.device(device):
            keras.utils.set_random_seed(2)
            backbone = getattr(keras_hub.models, f"{name}Backbone")(**SIZES, **MODELS[name])
            for weight in backbone.weights:  # so far apart that no rounding decides
                weight.assign(np.random.default_rng(weight.shape.num_elements()).normal(0, 1, weight.shape))
            kind = f"{name}Seq2SeqLM" if name == "T5" else f"{name}CausalLM"
            model = getattr(keras_hub.models, kind)(backbone=backbone, preprocessor=None)
            if mode is not None:
                model.quantize(mode)
            model.compile(sampler="greedy")
            models[device] = model
    return models


def outcome_of(model: keras.Model, name: str, tokens, known, stop=None):
    """The tokens, or the exception's type."""
    inputs = {"token_ids": tokens, "padding_mask": known}
    if name == "T5":
        inputs = {
            **{f"decoder_{key}": value for key, value in inputs.items()},
            "encoder_token_ids": np.tile(np.arange(1, 6, dtype=np.int32), (len(tokens), 1)),
            "encoder_padding_mask": mask(*[4] * len(tokens), length=5),
        }
    try:
        found = model.generate(inputs, stop_token_ids=stop)
    except Exception as error:
        return type(error)
    return found["decoder_token_ids" if name == "T5" else "token_ids"]


def outcomes_of(models: dict[str, keras.Model], name: str, *inputs):
    """The CPU's outcome and the XPU's."""
    outcomes = []
    for device, model in models.items():
        with tf.device(device):
            outcomes.append(outcome_of(model, name, *inputs))
    return outcomes


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_tokens_or_the_exception_are_the_cpus(xpu_device, name, mode):
    models, generated, wrong = models_of(name, mode), 0, {}
    for what, inputs in INPUTS.items():
        expected, found = outcomes_of(models, name, *inputs)
        generated += not isinstance(expected, type)
        if not np.array_equal(expected, found):
            wrong[what] = found, expected
    assert not wrong
    assert generated > len(INPUTS) / 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("mode", [None, "int8"])
def test_weights_that_are_no_numbers_lead_to_the_cpus_tokens(xpu_device, mode, value):
    models, inputs = models_of("GPT2", mode), INPUTS["prompts of several lengths"]
    with_numbers, _ = outcomes_of(models, "GPT2", *inputs)
    for model in models.values():
        bias = next(weight for weight in model.backbone.weights if "bias" in weight.path)
        bias.assign(np.full(bias.shape, value))
    expected, found = outcomes_of(models, "GPT2", *inputs)
    assert not np.array_equal(expected, with_numbers)
    np.testing.assert_array_equal(found, expected)
