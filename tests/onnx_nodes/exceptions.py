"""Operators that TensorFlow does not have, and cases that are not compared."""

from __future__ import annotations

# Reasons why TensorFlow has no such operator, and the operators. Names include the domain unless it is ONNX's own.
ABSENT = {
    "ONNX defines it by other operators, and its expanded test cases run": """
        AffineGrid Attention Bernoulli BlackmanWindow CausalConvWithState HammingWindow HannWindow LinearAttention
        RotaryEmbedding ai.onnx.preview/FlexAttention
    """,
    "its numbers are random, and so are ONNX's": """
        Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
    """,
    "it reads images at any points, which no op of TensorFlow does": "DeformConv GridSample MaxRoiPool RoiAlign",
    "its bins are whole numbers of the spectrum; TensorFlow's function weighs frequencies": "MelWeightMatrix",
    "it works on strings or files, which are never on an accelerator": """
        ImageDecoder RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer ai.onnx.ml/LabelEncoder
    """,
    "it evaluates decision trees, and TensorFlow's core has no op for them": """
        ai.onnx.ml/TreeEnsemble ai.onnx.ml/TreeEnsembleClassifier ai.onnx.ml/TreeEnsembleRegressor
    """,
    "ONNX has no test of it; it belongs to classical models": """
        ai.onnx.ml/CastMap ai.onnx.ml/CategoryMapper ai.onnx.ml/DictVectorizer ai.onnx.ml/FeatureVectorizer
        ai.onnx.ml/Imputer ai.onnx.ml/LinearClassifier ai.onnx.ml/LinearRegressor ai.onnx.ml/Normalizer
        ai.onnx.ml/OneHotEncoder ai.onnx.ml/SVMClassifier ai.onnx.ml/SVMRegressor ai.onnx.ml/Scaler ai.onnx.ml/ZipMap
    """,
    "a gradient of the graph around it is no op: tf.GradientTape makes graphs": "ai.onnx.preview.training/Gradient",
}
DEFINED = next(iter(ABSENT))

# Reasons why TensorFlow's CPU gives another result or an error, and patterns of the cases' names.
UNLIKE = {
    "TensorFlow has no casts between floating-point numbers and numbers of 4 or 2 bits": r"""
        test_cast(like)?_(U?INT[24]|FLOAT4E2M1)_to_FLOAT(16)?(_expanded)?
        test_cast(like)?_FLOAT(16)?_to_(U?INT[24]|FLOAT4E2M1)(_expanded)?
        test_cast(like)?_U?INT2_to_U?INT8(_expanded)?  test_(de)?quantizelinear_(u?int[24]|float4e2m1)
    """,
    "TensorFlow has no casts to and from these types of 8 bits": r"""
        test_cast(like)?_(no_saturate_)?\w*FNUZ\w*  test_cast_e8m0_\w+
    """,
    "a number that is too large for 8 bits becomes infinity or NaN, not the largest number": r"""
        test_cast(like)?_FLOAT(16)?_to_FLOAT8E(4M3FN|5M2)(_expanded)?  test_quantizelinear_e4m3fn
    """,
    "TensorFlow leaves undefined a shift by a negative number or by all bits": r"""
        test_bitshift_left_int(8|32)_shift_ge_width  test_bitshift_(left|right)_int(8|32)_negative_shift
    """,
    "tf.bitcast takes no bool": "test_bitcast_bool_to_uint8",
    "tf.clip_by_value gives the lower bound if it is above the upper one": "test_clip_min_greater_than_max",
    "dropout is random": "test_training_dropout(_default)?(_mask)?",
    "TensorFlow scatters products into variables only": """
        test_scatter_elements_with_reduction_mul test_scatternd_multiply
    """,
    "TensorFlow rounds the position of the nearest element in one way only": r"""
        test_resize_downsample_sizes_nearest  test_resize_upsample_sizes_nearest_(floor_align_corners|ceil_half_pixel)
        test_resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric
        test_resize_downsample_sizes_nearest_not_smaller
    """,
    "TensorFlow computes the scale from the rounded size": """
        test_resize_downsample_scales_linear_align_corners
    """,
    "TensorFlow's cubic weights have another parameter or come from a table": r"""
        test_resize_(up|down)sample_(scales|sizes)_cubic(_align_corners)?
    """,
    "TensorFlow leaves out elements beyond the border; ONNX repeats the last one": r"""
        test_resize_downsample_(scales|sizes)_(linear|cubic)_antialias
    """,
    "TensorFlow has no such coordinates": r"""
        test_resize_downsample_sizes_linear_pytorch_half_pixel
        test_resize_(up|down)sample_scales_linear_half_pixel_symmetric
    """,
    "TensorFlow treats subnormal numbers as zeros": "pytorch-operator/test_operator_add_size1_broadcast",
}

# Stored results that are rounded to a few digits: their error relative to the largest number.
ROUNDED = {"test_averagepool_2d_ceil_last_window_starts_on_pad": 1e-3}

# Reasons why the case runs eagerly only: TensorFlow needs the values of tensors to make the graph.
EAGER_ONLY = {
    "shapes in its branches depend on values": r"test_affine_grid_\w+_expanded",
    "a loop or a branch has a sequence": r"test_loop1[36]_seq(_none)?  test_if_(seq|opt)  test_sequence_map_\w+",
}

# Cases that TensorFlow's CPU gets wrong in a tf.function: Grappler treats a sum of matrices as the sum of a bias.
WRONG_ON_CPU = ("test_gemm_transposeA",)

# Reasons why the case runs on the CPU only, and patterns of the cases' names.
CPU_ONLY = {
    "XPUs have no floating-point numbers of 8 bits and no integers of 4": r"""
        test_cast(like)?_\w*(FLOAT8|INT4)\w*  test_(de)?quantizelinear_e[45]m[23]\w*
    """,
}


def absent() -> dict[tuple[str, str], str]:
    """Maps (domain, operator) to the reason."""
    names = {name: why for why, text in ABSENT.items() for name in text.split()}
    return {(name.rpartition("/")[0], name.rpartition("/")[2]): why for name, why in names.items()}


def patterns(table: dict[str, str]) -> list[str]:
    """All patterns of a table."""
    return [pattern for text in table.values() for pattern in text.split()]
