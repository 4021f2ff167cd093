"""The functions of keras.ops, keras.random and keras.activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from tests.api_survey.items import Item, functions, words

SHAPES = {"tolerance": float("inf")}
FORWARD = {"trains": False}
# Functions that Keras wrote for eager tensors: they ask for values, or for shapes as numbers.
EAGER = {"eager": True}

# Functions of one tensor of any numbers.
UNARY = words("""
abs absolute angle arctan arcsinh array average cbrt ceil celu conj conjugate copy cos cosh count_nonzero
deg2rad elu empty_like erf erfc exp exp2 expm1 fabs fliplr flipud floor gelu glu hard_shrink hard_sigmoid hard_silu
hard_swish hard_tanh i0 imag isfinite isinf isnan isneginf isposinf isreal log_sigmoid nan_to_num nancumprod nancumsum
nanargmax nanargmin negative ones_like rad2deg ravel real relu relu6 round selu sigmoid sign signbit silu sin sinc sinh
soft_shrink softplus softsign sparse_plus sparse_sigmoid sparsemax square squareplus stop_gradient swish tan tanh
tanh_shrink transpose trunc zeros_like""")
POSITIVE = words("log log10 log1p log2 reciprocal rsqrt sqrt erfinv arcsin arccos arctanh")
REDUCTIONS = words("""amax amin max min mean prod std sum var median nanmax nanmin nanmean nanprod nanstd
nansum nanvar logsumexp argmax argmin softmax log_softmax cumsum cumprod sort argsort norm count_nonzero flip
trapezoid""")
BINARY = words("""
add subtract multiply divide true_divide floor_divide mod fmod arctan2 maximum minimum fmax fmin hypot
heaviside logaddexp logaddexp2 nextafter equal not_equal greater greater_equal less less_equal divide_no_nan isclose
allclose dot inner outer vdot cdist""")
LOGICAL = words("logical_and logical_or logical_xor")
INTEGER = words(
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift left_shift right_shift gcd lcm"
)
WINDOWS = words("blackman hamming hanning")

ROWS = [
    *(f"{name}(x)" for name in UNARY if name != "empty_like"),
    ("empty_like(x)", SHAPES),
    "arccosh(big)",
    *(f"{name}(p)" for name in POSITIVE),
    *(f"{name}(x, axis=1)" for name in REDUCTIONS),
    ("nanmedian(x, axis=1)", EAGER),
    *(f"{name}(b, axis=1)" for name in ("all", "any")),
    *(
        f"{name}(x, {'y' if name not in ('dot', 'cdist') else 'transpose(y)' if name == 'dot' else 'y'})"
        for name in BINARY
    ),
    *(f"{name}(b, x > 0)" for name in LOGICAL),
    "logical_not(b)",
    *(f"{name}(i, j)" for name in INTEGER),
    "bitwise_not(i)",
    "bitwise_invert(i)",
    *(f"{name}(6)" for name in WINDOWS),
    "kaiser(6, 2.0)",
    ("bartlett(6)", EAGER),
    # Making and shaping
    "append(x, y, axis=0)",
    "arange(1.0, 5.0, 0.5)",
    "array_split(x, 4, axis=1)",
    "broadcast_to(v, (4, 6))",
    "cast(x, 'int32')",
    "cast(x, 'bfloat16')",
    "saturate_cast(x * 200, 'int8')",
    "concatenate([x, y], axis=1)",
    "convert_to_tensor(x)",
    "diag(v)",
    "diagflat(v)",
    "diagonal(x)",
    "diff(x)",
    "dsplit(seq, 2)",
    "dstack([x, y])",
    ("empty((2, 3))", SHAPES),
    "expand_dims(x, 1)",
    "extract_sequences(wave, 16, 8)",
    "eye(4)",
    "flip(x)",
    "full((2, 3), 7.0)",
    "full_like(x, 7.0)",
    "geomspace(1.0, 100.0, 5)",
    "get_item(x, (0, Ellipsis))",
    "hsplit(x, 2)",
    "hstack([x, y])",
    "identity(3)",
    "linspace(0.0, 1.0, 5)",
    "logspace(0.0, 2.0, 5)",
    "meshgrid(v, w)",
    "moveaxis(seq, 0, 2)",
    "multi_hot(i, 6)",
    "one_hot(i, 6)",
    "one_hot(labels, 6, sparse=False)",
    "ones((2, 3))",
    "pad(x, ((1, 1), (2, 0)))",
    "pad(x, ((1, 1), (2, 0)), mode='reflect')",
    "pad(x, ((1, 1), (2, 0)), mode='symmetric')",
    "rearrange(seq, 'a b c -> b (a c)')",
    "repeat(x, 2, axis=1)",
    "repeat(x, [1, 2, 0, 3], axis=0)",
    "reshape(x, (6, 4))",
    "roll(x, 2, axis=1)",
    "roll(x, 3)",
    "rot90(x)",
    "shape(x)",
    "size(x)",
    "slice(x, (1, 2), (2, 3))",
    ("slice_update(x, (1, 2), y[:2, :3])", FORWARD),
    "split(x, 3, axis=1)",
    "squeeze(x[None])",
    "stack([x, y], axis=1)",
    "swapaxes(seq, 0, 1)",
    "switch(1, [lambda a: a + 1, lambda a: a * 2], x)",
    "tile(x, (2, 1))",
    "tri(4, k=1)",
    "tril(x)",
    "triu(x, 1)",
    "unravel_index(i, (2, 3))",
    "unstack(x)",
    "vander(v, 3)",
    "view(x, 'int32')",
    "view_as_complex(stack([x, y], -1))",
    "view_as_real(c)",
    "vsplit(x, 2)",
    "vstack([x, y])",
    "zeros((2, 3))",
    "space_to_depth(im, 2)",
    "depth_to_space(concatenate([im[..., :2], im2[..., :2]], -1), 2)",
    # Selecting
    "where(b, x, y)",
    "where(b)",
    "nonzero(b)",
    "select([b, x > 0], [x, y], 0.0)",
    "take(x, ids, axis=0)",
    "take_along_axis(x, i, axis=1)",
    "scatter(ids[:, None], x, (5, 6))",
    "scatter_update(x, ids[1:, None], y[1:])",
    "segment_sum(x, ids, 4)",
    "segment_max(x, ids, 4)",
    "segment_min(x, ids, 4)",
    "segment_prod(x, ids, 4)",
    "clip(x, -0.5, 0.5)",
    "threshold(x, 0.5, 0.0)",
    ("isin(i, [1, 2])", EAGER),
    "unique(i)",
    "argpartition(x, 2)",
    "top_k(x, 2)",
    "in_top_k(labels, x, 2)",
    "searchsorted(sort(v), w)",
    "digitize(x, [-1.0, 0.0, 1.0])",
    "bincount(i, minlength=6)",
    ("bincount(i, weights=x, minlength=6)", FORWARD),
    ("histogram(v, 5)", EAGER),
    "quantile(x, 0.3, axis=1)",
    "percentile(x, 30, axis=1)",
    ("nanquantile(x, 0.3, axis=1)", EAGER),
    ("nanpercentile(x, 30, axis=1)", EAGER),
    # Arithmetic of arrays
    "ldexp(x, i)",
    "power(p, y)",
    "polar(p, y)",
    "lcm(i, j)",
    ("corrcoef(x)", EAGER),
    "correlate(v, w)",
    "cross(x[:, :3], y[:, :3])",
    "einsum('ij,kj->ik', x, y)",
    ("kron(x[:2, :2], y[:2, :3])", EAGER),
    "matmul(x, transpose(y))",
    "matmul(m, spd)",
    "tensordot(x, y, axes=[[1], [1]])",
    "trace(m, axis1=1, axis2=2)",
    "moments(x, axes=[0])",
    "normalize(x)",
    "ptp(x, axis=1)",
    "custom_gradient(lambda a: (a * 2, lambda upstream: upstream * 3))(x)",
    # Linear algebra
    "cholesky(spd)",
    "cholesky_inverse(cholesky(spd))",
    "det(m)",
    ("eig(spd)", FORWARD),
    "eigh(spd)",
    "inv(m)",
    "logdet(spd)",
    "slogdet(m)",
    ("lstsq(m[0], r[0])", FORWARD),
    ("lu_factor(m[0])", FORWARD),
    "matrix_rank(m)",
    "pinv(r)",
    "qr(r)",
    "solve(m, r)",
    "solve_triangular(tril(m), r, lower=True)",
    ("svd(r, full_matrices=False)", {"tolerance": 1e-3}),
    "svd(r, compute_uv=False)",
    "jvp(lambda a: sin(a), (x,), (y,))",
    # Signals
    "fft((real(z), imag(z)))",
    "fft2((real(c), imag(c)))",
    "ifft2((real(c), imag(c)))",
    "rfft(wave)",
    "irfft((real(z), imag(z)))",
    "stft(wave, 16, 8, 16)",
    "istft(stft(wave, 16, 8, 16), 16, 8, 16)",
    # Networks
    "adaptive_average_pool(im, 3)",
    "adaptive_max_pool(im, 3)",
    "average_pool(im, 2, 1, 'same')",
    "max_pool(im, 2)",
    "conv(im, k2, 1, 'same')",
    "conv(seq, k1)",
    "conv_transpose(im, transpose(k2, (0, 1, 3, 2)), 2)",
    "depthwise_conv(im, kd)",
    "separable_conv(im, kd, ones((1, 1, 6, 4)))",
    "batch_normalization(x, mean(x, axis=0), var(x, axis=0), axis=-1)",
    "layer_normalization(x)",
    "rms_normalization(x)",
    "leaky_relu(x)",
    "dot_product_attention(seq[:, :, None], seq[:, :, None], seq[:, :, None])",
    "binary_crossentropy(binary, p)",
    "binary_crossentropy(binary, x, from_logits=True)",
    "categorical_crossentropy(onehot, q)",
    "sparse_categorical_crossentropy(labels, x, from_logits=True)",
    "sparse_categorical_crossentropy(labels, q)",
    "ctc_loss(tokens[:, :2] + 1, concatenate([seq, seq], -1), array([2, 1]), array([5, 4]), mask_index=0)",
    ("ctc_decode(seq, array([5, 5]), mask_index=5)", FORWARD),
    ("ctc_decode(seq, array([5, 5]), strategy='beam_search', beam_width=3, mask_index=5)", FORWARD),
    "psnr(im, im2, 1.0)",
    "unfold(im, 2)",
    "fold(unfold(transpose(im, (0, 3, 1, 2)), 2), 8, 2)",
    # Control flow
    "cond(sum(x) > 100, lambda: x, lambda: y)",
    "fori_loop(0, 3, lambda n, a: a * 1.1, x)",
    "while_loop(lambda a: sum(a) < 0, lambda a: (a + 1,), (x,))",
    "scan(lambda carry, a: (carry + a, carry * a), v, x)",
    "map(lambda a: a * 2, x)",
    "vectorized_map(lambda a: a * 2, x)",
    "associative_scan(lambda a, b: a + b, x)",
]

SKIPPED = {
    **dict.fromkeys(["convert_to_numpy", "is_tensor", "dtype", "ndim"], "computes nothing"),
    "vectorize": "as vectorized_map",
}

RANDOM_ROWS = [
    "normal((3, 4), seed=seed)",
    "uniform((3, 4), seed=seed)",
    "truncated_normal((3, 4), seed=seed)",
    "randint((3, 4), 0, 10, seed=seed)",
    "categorical(x, 5, seed=seed)",
    "dropout(x, 0.5, seed=seed)",
    "gamma((3, 4), 2.0, seed=seed)",
    "beta((3, 4), 2.0, 3.0, seed=seed)",
    "binomial((3, 4), 10.0, 0.3, seed=seed)",
    "shuffle(x, seed=seed)",
]


def random_items() -> list[Item]:
    """With a seed in a variable: what depends on constants alone is folded and runs nowhere."""

    def build(text: str) -> Callable[[], Callable[..., Any]]:
        def built() -> Callable[..., Any]:
            names = {**vars(keras.random), "seed": keras.random.SeedGenerator(1)}
            return eval(f"lambda x: {text}", names)

        return built

    return [Item("keras.random", text, build(text), ("x",), trains=False) for text in RANDOM_ROWS]


RANDOM_SKIPPED = {"SeedGenerator": "computes nothing"}

IMAGE_ROWS = [
    "affine_transform(im, array([[1.0, 0.1, 0, 0, 1, 0.2, 0, 0]] * 2))",
    "affine_transform(im, array([[1.0, 0.1, 0, 0, 1, 0.2, 0, 0]] * 2), 'nearest', 'wrap')",
    "crop_images(im, 1, 1, target_height=4, target_width=4)",
    "pad_images(im, 1, 1, target_height=10, target_width=10)",
    "extract_patches(im, 3)",
    "gaussian_blur(im)",
    "elastic_transform(im, seed=1)",
    "hsv_to_rgb(im)",
    "rgb_to_hsv(im)",
    "rgb_to_grayscale(im)",
    "map_coordinates(x, [v, w], 1)",
    "perspective_transform(im, array([[[0.0, 0], [7, 0], [0, 7], [7, 7]]] * 2), "
    "array([[[0.0, 1], [6, 0], [0, 7], [7, 6]]] * 2))",
    *(f"resize(im, (5, 7), '{how}')" for how in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")),
    "resize(im, (5, 7), antialias=True)",
    "scale_and_translate(im, (2, 5, 7, 3), array([0.6, 0.8]), array([0.1, 0.2]), (1, 2), 'linear')",
    "ssim(im, im2, 1.0, filter_size=5)",
]

ACTIVATIONS = [f"{name}(x)" for name in words("exponential linear mish")]

NAMES = vars(keras.ops)
ITEMS = [
    *functions("keras.ops", NAMES, ROWS),
    *functions("keras.ops.image", {**NAMES, **vars(keras.ops.image)}, IMAGE_ROWS),
    *random_items(),
    *functions("keras.activations", vars(keras.activations), ACTIVATIONS),
]
