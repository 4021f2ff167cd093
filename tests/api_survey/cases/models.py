"""Whole models, of reduced size and with random weights: KerasHub's backbones, tf_keras with its optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.api_survey.items import Item, words

# Roundings add up over layers.
TOLERANCE = 2e-3

TEXT = "vocabulary_size=20, num_layers=1, hidden_dim=8, intermediate_dim=16"
HEADS = f"{TEXT}, num_heads=2"
LENGTH = f"{HEADS}, max_sequence_length=8"
GROUPED = f"{TEXT}, num_query_heads=4, num_key_value_heads=2"
MOE = f"{GROUPED}, num_experts=2, top_k=1"
PATCHES = "image_shape=(16, 16, 3), patch_size=4, num_layers=1, hidden_dim=8, num_heads=2"

BACKBONES = [
    f"AlbertBackbone({LENGTH}, embedding_dim=4)",
    f"BartBackbone({LENGTH})",
    f"BertBackbone({LENGTH})",
    f"BloomBackbone({HEADS})",
    f"DebertaV3Backbone({LENGTH}, bucket_size=4)",
    f"DistilBertBackbone({LENGTH})",
    f"ElectraBackbone({LENGTH.replace('vocabulary_size', 'vocab_size')}, embedding_dim=4)",
    f"ESM2Backbone({LENGTH})",
    f"FNetBackbone({TEXT}, max_sequence_length=8)",
    f"FalconBackbone({TEXT}, num_attention_heads=2)",
    f"GPT2Backbone({LENGTH})",
    f"GPTNeoXBackbone({LENGTH}, rotary_percentage=0.5)",
    f"GemmaBackbone({GROUPED}, head_dim=4)",
    f"Gemma3Backbone({GROUPED}, head_dim=4, image_size=16, vision_encoder=None)",
    f"GptOssBackbone({MOE})",
    f"LlamaBackbone({GROUPED})",
    f"Llama3Backbone({GROUPED})",
    f"MistralBackbone({GROUPED})",
    f"MixtralBackbone({MOE})",
    f"OPTBackbone({LENGTH})",
    f"Phi3Backbone({GROUPED})",
    f"Qwen2Backbone({GROUPED})",
    f"Qwen3Backbone({GROUPED}, head_dim=4)",
    f"Qwen3MoeBackbone({GROUPED}, moe_intermediate_dim=8, num_experts=2, top_k=1)",
    f"RobertaBackbone({LENGTH})",
    f"RoformerV2Backbone({HEADS}, head_size=4)",
    "RWKV7Backbone(hidden_size=8, head_size=4, num_layers=1, vocabulary_size=20, intermediate_dim=16, gate_lora=4, "
    "mv_lora=4, aaa_lora=4, decay_lora=4)",
    f"T5Backbone({HEADS})",
    f"XLMRobertaBackbone({LENGTH})",
    f"XLNetBackbone({HEADS})",
    f"WhisperBackbone({HEADS}, num_mels=8, max_encoder_sequence_length=12, max_decoder_sequence_length=6)",
    "MoonshineBackbone(vocabulary_size=20, filter_dim=8, encoder_num_layers=1, decoder_num_layers=1, hidden_dim=8, "
    "intermediate_dim=16, encoder_num_heads=2, decoder_num_heads=2)",
    f"ViTBackbone({PATCHES.replace('patch_size=4', 'patch_size=(4, 4)')}, mlp_dim=16)",
    f"DeiTBackbone({PATCHES}, intermediate_dim=16)",
    f"DINOV2Backbone({PATCHES}, intermediate_dim=16, position_embedding_shape=(24, 24, 3))",
    f"DINOV3Backbone({PATCHES}, intermediate_dim=16)",
    "SwinTransformerBackbone(image_shape=(32, 32, 3), embed_dim=8, depths=(2, 2), num_heads=(2, 2), window_size=2)",
    "MiTBackbone(layerwise_depths=[1, 1], num_layers=2, layerwise_num_heads=[1, 2], layerwise_sr_ratios=[2, 1], "
    "max_drop_path_rate=0.1, layerwise_patch_sizes=[7, 3], layerwise_strides=[4, 2], hidden_dims=[8, 16], "
    "image_shape=(32, 32, 3))",
    "ViTDetBackbone(hidden_size=8, num_layers=1, intermediate_dim=16, num_heads=2, global_attention_layer_indices=[1], "
    "image_shape=(32, 32, 3), patch_size=8, num_output_channels=4, window_size=2)",
    "ResNetBackbone(input_conv_filters=[8], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 64], "
    "stackwise_num_blocks=[1, 1], stackwise_num_strides=[1, 2], block_type='bottleneck_block', "
    "image_shape=(32, 32, 3))",
    "DenseNetBackbone(stackwise_num_repeats=[1, 1], growth_rate=4, image_shape=(32, 32, 3))",
    "VGGBackbone(stackwise_num_repeats=[1, 1], stackwise_num_filters=[4, 8], image_shape=(16, 16, 3))",
    "XceptionBackbone(stackwise_conv_filters=[[4, 4], [8, 8]], stackwise_pooling=[True, False], "
    "image_shape=(32, 32, 3))",
    "CLIPBackbone(CLIPVisionEncoder(8, 16, 1, 2, 16, image_shape=(32, 32, 3)), "
    "CLIPTextEncoder(20, 8, 8, 1, 2, 16, max_sequence_length=8), 8)",
    # The parts of Stable Diffusion 3 that compute.
    "MMDiT(patch_size=2, hidden_dim=16, num_layers=2, num_heads=2, position_size=8, latent_shape=(8, 8, 4), "
    "context_shape=(4, 8), pooled_projection_shape=(8,), qk_norm='rms_norm', dual_attention_indices=[0])",
    "VAEBackbone([32, 32], [1, 1], [32, 32], [1, 1], image_shape=(16, 16, 3))",
    "CLIPTextEncoder(20, 8, 8, 2, 2, 16, 'quick_gelu', -2, 8)",
    "FluxBackbone(input_channels=8, hidden_size=16, mlp_ratio=2.0, num_heads=2, depth=1, depth_single_blocks=1, "
    "axes_dim=[2, 2, 4], theta=100, use_bias=True, image_shape=(6, 8), text_shape=(4, 8), image_ids_shape=(6, 3), "
    "text_ids_shape=(4, 3), y_shape=(8,))",
]


# The length of a sound.
SAMPLES = 1500


def example(tensor: keras.KerasTensor, name: str) -> np.ndarray:
    """A batch of two for one of a model's inputs."""
    rng = np.random.default_rng(0)
    open_extent = SAMPLES if tensor.shape[1:] == (None, 1) else 6
    shape = [2, *(open_extent if extent is None else extent for extent in tensor.shape[1:])]
    if "mask" in name:
        return np.ones(shape, tensor.dtype)
    if keras.backend.is_float_dtype(tensor.dtype):
        return rng.uniform(0, 1, shape).astype(tensor.dtype)
    return rng.integers(0, 2 if "segment" in name else 10, shape).astype(tensor.dtype)


def backbone(text: str) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        import keras_hub
        from keras_hub.src.models.clip.clip_text_encoder import CLIPTextEncoder
        from keras_hub.src.models.clip.clip_vision_encoder import CLIPVisionEncoder
        from keras_hub.src.models.stable_diffusion_3.mmdit import MMDiT
        from keras_hub.src.models.vae.vae_backbone import VAEBackbone

        parts = (CLIPTextEncoder, CLIPVisionEncoder, MMDiT, VAEBackbone)
        names = {**vars(keras_hub.models), **{part.__name__: part for part in parts}}
        model = eval(text, names)
        named = isinstance(model.input, dict)
        tensors = model.input if named else {model.input.name: model.input}
        inputs = {name: tf.constant(example(tensor, name)) for name, tensor in tensors.items()}
        return lambda: model(inputs if named else inputs[model.input.name], training=True)

    return build


def fitted(make: Callable[[], Any], x: np.ndarray, y: np.ndarray) -> Callable[[], Callable[..., Any]]:
    """Two steps of fit() with a compiled model, and its prediction."""

    def build() -> Callable[..., Any]:
        model = make()

        def train() -> list[tf.Tensor]:
            history = model.fit(x, y, epochs=2, batch_size=len(x), shuffle=False, verbose=0).history
            return [tf.constant(history["loss"]), tf.constant(model.predict(x, verbose=0))]

        return train

    return build


def tf_keras_models() -> list[Item]:
    """Keras 2, with each of its optimizers on a small network, and one network of each kind."""
    rng = np.random.default_rng(0)
    flat, images = rng.standard_normal((8, 6)).astype("f"), rng.standard_normal((8, 8, 8, 3)).astype("f")
    series, tokens = rng.standard_normal((8, 5, 4)).astype("f"), rng.integers(0, 10, (8, 5)).astype("i")
    y = rng.integers(0, 3, 8).astype("i")
    networks = {
        "Dense(8, 'relu'), BatchNormalization(), Dropout(0.2, seed=1), Dense(3)": flat,
        "Conv2D(4, 3), MaxPooling2D(), LayerNormalization(), SeparableConv2D(4, 3), GlobalAveragePooling2D(), "
        "Dense(3)": images,
        "LSTM(4, return_sequences=True), Bidirectional(GRU(4)), Dense(3)": series,
        "Embedding(10, 4, mask_zero=True), SimpleRNN(4), Dense(3)": tokens,
    }
    optimizers = words("Adam SGD RMSprop Adagrad Adadelta Adamax Nadam Ftrl AdamW Lion Adafactor")
    legacy = [f"legacy.{name}" for name in words("Adam SGD RMSprop Adagrad Adadelta Adamax Nadam Ftrl")]
    first = next(iter(networks))
    rows = [(first, optimizer) for optimizer in (*optimizers, *legacy)]
    rows += [(network, "Adam") for network in networks if network != first]

    def make(network: str, optimizer: str) -> Callable[[], Any]:
        def made() -> Any:
            import tf_keras

            tf_keras.utils.set_random_seed(1)
            model = tf_keras.Sequential(list(eval(f"({network},)", dict(vars(tf_keras.layers)))))
            made_optimizer = eval(f"{optimizer}(0.01)", dict(vars(tf_keras.optimizers)))
            model.compile(made_optimizer, tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            return model

        return made

    return [
        Item(
            "tf_keras",
            f"{network}; {optimizer}",
            fitted(make(network, optimizer), networks[network], y),
            tolerance=TOLERANCE,
            trains=False,
            eager=True,
        )
        for network, optimizer in rows
    ]


ITEMS = [
    *(Item("keras_hub", text, backbone(text), tolerance=TOLERANCE) for text in BACKBONES),
    *tf_keras_models(),
]
