"""Ops on images: bad input gets the CPU's errors, and tf.image and Keras run on the device with the CPU's results."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.sweep.runner import hard_placement

raw = tf.raw_ops


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def resize(op="ResizeBilinear", images=(1, 2, 3, 1), size=(4, 5), **kwargs):
    return lambda: getattr(raw, op)(images=ones(*images), size=size, **kwargs)


def resize_grad(op="ResizeBilinearGrad", grads=(1, 2, 3, 1), image=(1, 4, 5, 1), **kwargs):
    return lambda: getattr(raw, op)(grads=ones(*grads), original_image=ones(*image), **kwargs)


def scale(images=(1, 2, 3, 1), size=(4, 5), scale=(1.0, 1.0), translation=(0.0, 0.0), **kwargs):
    return lambda: raw.ScaleAndTranslate(
        images=ones(*images), size=size, scale=scale, translation=translation, **kwargs
    )


def crop(image=(2, 3, 4, 1), boxes=((0.0, 0.0, 1.0, 1.0),), box_ind=(1,), crop_size=(2, 2), **kwargs):
    return lambda: raw.CropAndResize(
        image=ones(*image),
        boxes=np.array(boxes, np.float32),
        box_ind=np.array(box_ind, np.int32),
        crop_size=crop_size,
        **kwargs,
    )


def crop_grad(op="CropAndResizeGradImage", grads=(1, 2, 2, 1), boxes=(1, 4), box_ind=(1,), **kwargs):
    if op == "CropAndResizeGradImage":
        kwargs = {"image_size": (2, 3, 4, 1), "T": tf.float32, **kwargs}
    else:
        kwargs = {"image": ones(*kwargs.pop("image", (2, 3, 4, 1))), **kwargs}
    return lambda: getattr(raw, op)(
        grads=ones(*grads), boxes=ones(*boxes), box_ind=np.array(box_ind, np.int32), **kwargs
    )


def transform(images=(2, 3, 4, 1), transforms=(2, 8), output_shape=(3, 4), fill_value=0.0, **kwargs):
    kwargs = {"interpolation": "BILINEAR", **kwargs}
    return lambda: raw.ImageProjectiveTransformV3(
        images=ones(*images), transforms=ones(*transforms), output_shape=output_shape, fill_value=fill_value, **kwargs
    )


def suppress(op="NonMaxSuppressionV3", boxes=(3, 4), scores=(3,), most=2, iou=0.5, least=0.1, **kwargs):
    if op != "NonMaxSuppressionV2":
        kwargs["score_threshold"] = np.float32(least)
    return lambda: getattr(raw, op)(
        boxes=ones(*boxes), scores=ones(*scores), max_output_size=most, iou_threshold=np.float32(iou), **kwargs
    )


def select(boxes=(1, 3, 1, 4), scores=(1, 3, 2), most=2, total=3, iou=0.5, least=0.1):
    return lambda: raw.CombinedNonMaxSuppression(
        boxes=ones(*boxes),
        scores=ones(*scores),
        max_output_size_per_class=most,
        max_total_size=total,
        iou_threshold=np.float32(iou),
        score_threshold=np.float32(least),
    )


def overlaps(overlaps=(3, 3), scores=(3,)):
    return lambda: raw.NonMaxSuppressionWithOverlaps(
        overlaps=ones(*overlaps),
        scores=ones(*scores),
        max_output_size=2,
        overlap_threshold=0.5,
        score_threshold=0.1,
    )


def patches(images=(1, 4, 4, 1), ksizes=(1, 2, 2, 1), strides=(1, 1, 1, 1), rates=(1, 1, 1, 1), padding="VALID"):
    return lambda: raw.ExtractImagePatches(
        images=ones(*images), ksizes=list(ksizes), strides=list(strides), rates=list(rates), padding=padding
    )


def volumes(x=(1, 4, 4, 4, 1), ksizes=(1, 2, 2, 2, 1), strides=(1, 1, 1, 1, 1), padding="VALID"):
    return lambda: raw.ExtractVolumePatches(input=ones(*x), ksizes=list(ksizes), strides=list(strides), padding=padding)


def dilate(x=(1, 4, 4, 2), f=(2, 2, 2), strides=(1, 1, 1, 1), rates=(1, 1, 1, 1), dy=None, padding="VALID"):
    op = raw.Dilation2D if dy is None else raw.Dilation2DBackpropInput
    more = {} if dy is None else {"out_backprop": ones(*dy)}
    return lambda: op(
        input=ones(*x), filter=ones(*f), strides=list(strides), rates=list(rates), padding=padding, **more
    )


BAD = {
    "rank": resize(images=(2, 3, 1)),
    "no channels": resize(images=(1, 2, 3, 0)),
    "no pixels": resize(images=(1, 0, 3, 1)),
    "size of rank 2": resize(size=((4, 5),)),
    "three sizes": resize(size=(4, 5, 6)),
    "size of 0": resize(size=(0, 5)),
    "negative size": resize("ResizeNearestNeighbor", size=(4, -5)),
    "both scalings": resize("ResizeBicubic", align_corners=True, half_pixel_centers=True),
    "area of rank 3": resize("ResizeArea", images=(2, 3, 1)),
    "nearest gradient of rank 3": lambda: raw.ResizeNearestNeighborGrad(grads=ones(2, 3, 1), size=(4, 5)),
    "nearest gradient to nothing": lambda: raw.ResizeNearestNeighborGrad(grads=ones(1, 2, 3, 1), size=(0, 5)),
    "nearest gradient of three": lambda: raw.ResizeNearestNeighborGrad(grads=ones(1, 2, 3, 1), size=(1, 2, 3)),
    "gradient of rank 3": resize_grad(grads=(2, 3, 1)),
    "gradient of an image of rank 3": resize_grad(image=(2, 3, 1)),
    "gradient of nothing": resize_grad(grads=(1, 0, 3, 1)),
    "gradient to nothing": resize_grad("ResizeBicubicGrad", image=(1, 4, 0, 1)),
    "gradient with both scalings": resize_grad(align_corners=True, half_pixel_centers=True),
    "scaled rank": scale(images=(2, 3, 1)),
    "scaled by 0": scale(scale=(0.0, 1.0)),
    "scaled by three": scale(scale=(1.0, 1.0, 1.0)),
    "translated by a matrix": scale(translation=((0.0, 0.0),)),
    "scaled to nothing": scale(size=(0, 5)),
    "scaled from nothing": scale(images=(1, 2, 0, 1)),
    "unknown filter": scale(kernel_type="lanczos7"),
    "crop of rank 3": crop(image=(2, 3, 1)),
    "crop of nothing": crop(image=(2, 0, 4, 1)),
    "boxes of rank 1": crop(boxes=(0.0, 0.0, 1.0, 1.0)),
    "boxes of 3": crop(boxes=((0.0, 0.0, 1.0),)),
    "numbers of rank 2": crop(box_ind=((1,),)),
    "too many numbers": crop(box_ind=(1, 1)),
    "number beyond": crop(box_ind=(2,)),
    "negative number": crop(box_ind=(-1,), method="nearest"),
    "box of NaN": crop(boxes=((0.0, float("nan"), 1.0, 1.0),)),
    "box without end": crop(boxes=((0.0, 0.0, float("inf"), 1.0),)),
    "crop of rank 2 in size": crop(crop_size=((2, 2),)),
    "crop of three": crop(crop_size=(2, 2, 2)),
    "crop to nothing": crop(crop_size=(2, 0)),
    "unknown method": crop(method="cubic"),
    "image gradient of rank 3": crop_grad(grads=(2, 2, 1)),
    "image gradient with two boxes": crop_grad(boxes=(2, 4), box_ind=(0, 0)),
    "image gradient of no size": crop_grad(image_size=(2, 3, 0, 1)),
    "image gradient of three sizes": crop_grad(image_size=(2, 3, 4)),
    "image gradient of depth 2": crop_grad(image_size=(2, 3, 4, 2)),
    "image gradient of number 7": crop_grad(box_ind=(7,)),
    "box gradient of rank 3": crop_grad("CropAndResizeGradBoxes", image=(3, 4, 1)),
    "box gradient of depth 2": crop_grad("CropAndResizeGradBoxes", image=(2, 3, 4, 2)),
    "box gradient by nearest": crop_grad("CropAndResizeGradBoxes", method="nearest"),
    "box gradient of number -2": crop_grad("CropAndResizeGradBoxes", box_ind=(-2,)),
    "transformed rank": transform(images=(2, 3, 4)),
    "transforms of 9": transform(transforms=(2, 9)),
    "three transforms": transform(transforms=(3, 8)),
    "transformed to three": transform(output_shape=(1, 2, 3)),
    "transformed to nothing": transform(output_shape=(0, 2)),
    "fill of rank 1": transform(fill_value=(1.0,)),
    "HSV of a number": lambda: raw.RGBToHSV(images=np.float32(1)),
    "HSV of 4": lambda: raw.RGBToHSV(images=ones(2, 4)),
    "RGB of 2": lambda: raw.HSVToRGB(images=ones(2, 2)),
    "hue of rank 2": lambda: raw.AdjustHue(images=ones(2, 3), delta=0.1),
    "hue of 4": lambda: raw.AdjustHue(images=ones(2, 2, 4), delta=0.1),
    "hue by two": lambda: raw.AdjustHue(images=ones(2, 2, 3), delta=(0.1, 0.2)),
    "saturation of rank 2": lambda: raw.AdjustSaturation(images=ones(2, 3), scale=0.1),
    "saturation of 4": lambda: raw.AdjustSaturation(images=ones(2, 2, 4), scale=0.1),
    "saturation by two": lambda: raw.AdjustSaturation(images=ones(2, 2, 3), scale=(0.1, 0.2)),
    "contrast of rank 2": lambda: raw.AdjustContrastv2(images=ones(2, 3), contrast_factor=2.0),
    "contrast by two": lambda: raw.AdjustContrastv2(images=ones(2, 2, 3), contrast_factor=(2.0, 1.0)),
    "patches of rank 3": patches(images=(4, 4, 1)),
    "patches of batches": patches(ksizes=(2, 2, 2, 1)),
    "patches of 0": patches(ksizes=(1, 0, 2, 1)),
    "patches at stride 0": patches(strides=(1, 1, 0, 1)),
    "patches of negative rate": patches(rates=(1, -1, 1, 1)),
    "patches that do not fit": patches(ksizes=(1, 6, 2, 1)),
    "volumes of rank 4": volumes(x=(1, 4, 4, 1)),
    "volumes of channels": volumes(ksizes=(1, 2, 2, 2, 2)),
    "volumes that do not fit": volumes(ksizes=(1, 9, 2, 2, 1)),
    "boxes of rank 3": suppress(boxes=(3, 4, 1)),
    "boxes with 5 columns": suppress(boxes=(3, 5)),
    "scores of rank 2": suppress("NonMaxSuppressionV2", scores=(3, 1)),
    "more scores": suppress("NonMaxSuppressionV4", scores=(4,)),
    "negative number of boxes": suppress(most=-1),
    "two numbers of boxes": suppress(most=(1, 2)),
    "overlap above 1": suppress(iou=1.5),
    "overlap of NaN": suppress(iou=float("nan")),
    "all classes: boxes of rank 3": select(boxes=(1, 3, 4)),
    "all classes: scores of rank 2": select(scores=(3, 2)),
    "all classes: boxes of some classes": select(boxes=(1, 3, 2, 4), scores=(1, 3, 3)),
    "all classes: boxes with 5 columns": select(boxes=(1, 3, 1, 5)),
    "all classes: more scores": select(scores=(1, 4, 2)),
    "all classes: more images": select(scores=(2, 3, 2)),
    "all classes: no boxes of a class": select(most=0),
    "all classes: two numbers of boxes": select(most=(1, 2)),
    "all classes: no boxes": select(total=0),
    "all classes: two totals": select(total=(1, 2)),
    "all classes: overlap above 1": select(iou=1.5),
    "all classes: two overlaps": select(iou=(0.1, 0.2)),
    "all classes: overlap of NaN": select(iou=float("nan")),
    "all classes: two thresholds": select(least=(0.1, 0.2)),
    "overlaps of rank 1": overlaps(overlaps=(3,)),
    "overlaps that are not square": overlaps(overlaps=(3, 4)),
    "dilation of rank 3": dilate(x=(4, 4, 2)),
    "dilation by rank 2": dilate(f=(2, 2)),
    "dilation of other depth": dilate(f=(2, 2, 3)),
    "dilation of batches": dilate(strides=(2, 1, 1, 1)),
    "dilation at channels": dilate(rates=(1, 1, 1, 2)),
    "dilation that does not fit": dilate(f=(6, 2, 2)),
    "dilation gradient of rank 3": dilate(dy=(3, 3, 2)),
    "dilation gradient of another size": dilate(dy=(1, 2, 3, 2)),
}


def failure_of(call, device):
    with hard_placement(), tf.device(device), pytest.raises(tf.errors.OpError) as raised:
        call()
    message = raised.value.message
    # The names of the op and the device differ, as they should.
    return type(raised.value), message.split("{{function_node")[0].split(" [Op:")[0].split("} ")[-1]


@pytest.mark.parametrize("name", BAD)
def test_errors_are_the_cpus(name, xpu_device):
    assert failure_of(BAD[name], xpu_device) == failure_of(BAD[name], "/cpu:0")


def same(call, xpu_device):
    """The result of a call on both devices, which must be the same."""
    with hard_placement():
        with tf.device(xpu_device):
            got = call()
        with tf.device("/cpu:0"):
            want = call()
    for g, w in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g.numpy(), w.numpy())


EMPTY = {
    "no images": lambda: raw.ResizeBilinear(images=ones(0, 2, 3, 1), size=(4, 5)),
    "no images, nearest": lambda: raw.ResizeNearestNeighbor(images=ones(0, 2, 3, 1), size=(4, 5)),
    "no images, cubic": lambda: raw.ResizeBicubic(images=ones(0, 2, 3, 1), size=(4, 5)),
    "no gradients": lambda: raw.ResizeNearestNeighborGrad(grads=ones(1, 0, 3, 1), size=(4, 5)),
    "no boxes": crop(boxes=np.zeros((0, 4)), box_ind=()),
    "gradient of no boxes": crop_grad(grads=(0, 2, 2, 1), boxes=(0, 4), box_ind=()),
    "box gradient of no boxes": crop_grad("CropAndResizeGradBoxes", grads=(0, 2, 2, 1), boxes=(0, 4), box_ind=()),
    "no transformed images": transform(images=(0, 3, 4, 1), transforms=(1, 8)),
    "no pixels": lambda: raw.RGBToHSV(images=ones(0, 3)),
    "no contrast": lambda: raw.AdjustContrastv2(images=ones(2, 0, 2, 3), contrast_factor=2.0),
    "no hue": lambda: raw.AdjustHue(images=ones(2, 0, 3), delta=0.1),
    "no patches": patches(images=(0, 4, 4, 1)),
    "patches of no channels": patches(images=(1, 4, 4, 0), padding="SAME"),
    "no dilation": dilate(x=(0, 4, 4, 2)),
    "gradient of no dilation": dilate(x=(0, 4, 4, 2), dy=(0, 3, 3, 2)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_input(name, xpu_device):
    same(EMPTY[name], xpu_device)


NAN, INF = float("nan"), float("inf")


def test_infinity_and_nan_go_where_they_do_on_the_cpu(xpu_device):
    image = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4, 1)
    image[0, 1, 1], image[0, 2, 3] = NAN, INF
    for size in ((3, 4), (5, 7), (2, 2)):
        same(lambda size=size: raw.ResizeBilinear(images=image, size=size, half_pixel_centers=True), xpu_device)
        same(lambda size=size: raw.ResizeNearestNeighbor(images=image, size=size), xpu_device)
    same(lambda: raw.Dilation2D(input=image, filter=ones(2, 2, 1), strides=[1] * 4, rates=[1] * 4, padding="SAME"),
         xpu_device)  # fmt: skip


@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "WRAP", "NEAREST"])
@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
def test_transforms_to_nowhere(mode, interpolation, xpu_device):
    """Points at infinity, at no number, and where the plane is seen edge on."""
    image = np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4, 1)
    numbers = [
        [NAN, 0, 0.5, 0, 1, 0.5, 0, 0],
        [1, 0, INF, 0, 1, 0.5, 0, 0],
        [1, 0, 0.5, 0, 1, -INF, 0, 0],
        [1, 0, -1e30, 0, 1, 0.5, 0, 0],
        [1, 0, 0.5, 0, 1, 0.5, -1, 0],
        [1, 0, -0.5, 0, 1, -2.5, 0, 0],
    ]
    for one in numbers:
        same(
            lambda one=one: raw.ImageProjectiveTransformV3(
                images=image,
                transforms=[one],
                output_shape=(5, 6),
                fill_value=100.0,
                interpolation=interpolation,
                fill_mode=mode,
            ),
            xpu_device,
        )


def test_nearest_pixels_of_many_transforms(xpu_device):
    """Coordinates are the CPU's to the last bit: at no border between two pixels is another one taken."""
    rng = np.random.default_rng(1)
    images = rng.uniform(0, 255, (40, 9, 11, 1)).astype(np.float32)
    transforms = rng.uniform(-1, 1, (40, 8)) * [2, 2, 9, 2, 2, 9, 0.1, 0.1]
    transforms[::2] = np.round(transforms[::2] * 2) / 2
    for mode in ("CONSTANT", "REFLECT", "WRAP"):
        same(
            lambda mode=mode: raw.ImageProjectiveTransformV3(
                images=images,
                transforms=transforms.astype(np.float32),
                output_shape=(13, 12),
                fill_value=1.0,
                interpolation="NEAREST",
                fill_mode=mode,
            ),
            xpu_device,
        )


def test_sizes_of_many_resizes(xpu_device):
    """The same of resizing: each pixel from the same ones as on the CPU, with the same weights."""
    image = np.random.default_rng(2).uniform(0, 255, (1, 37, 23, 1)).astype(np.float32)
    for size in [(1, 1), (12, 7), (36, 24), (37, 22), (74, 46), (111, 69), (100, 300)]:
        for scaling in ({"half_pixel_centers": True}, {"align_corners": True}, {}):
            for op in (raw.ResizeBilinear, raw.ResizeNearestNeighbor):
                same(lambda op=op, size=size, scaling=scaling: op(images=image, size=size, **scaling), xpu_device)


IMAGES = np.random.default_rng(3).uniform(0, 1, (2, 12, 10, 3)).astype(np.float32)
BYTES = (IMAGES * 255).astype(np.uint8)
BOXES = np.array([[0.1, 0.1, 0.8, 0.9], [0, 0.3, 1.2, 0.5]], np.float32)

TF_IMAGE = {
    **{
        f"resize by {method}, {antialias}": lambda x, m=method, a=antialias: tf.image.resize(x, (7, 15), m, antialias=a)
        for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
        for antialias in (False, True)
    },
    "resize of bytes": lambda x: tf.cast(tf.image.resize(tf.cast(x * 255, tf.uint8), (7, 15)), tf.uint8),
    "resize with pad": lambda x: tf.image.resize_with_pad(x, 16, 9),
    "crop or pad": lambda x: tf.image.resize_with_crop_or_pad(x, 8, 14),
    "central crop": lambda x: tf.image.central_crop(x, 0.5),
    "crop and resize": lambda x: tf.image.crop_and_resize(x, BOXES, [0, 1], (5, 4)),
    "brightness": lambda x: tf.image.adjust_brightness(x, 0.1),
    "contrast": lambda x: tf.image.adjust_contrast(x, 0.4),
    "gamma": lambda x: tf.image.adjust_gamma(x, 0.4),
    "hue": lambda x: tf.image.adjust_hue(x, 0.3),
    "saturation": lambda x: tf.image.adjust_saturation(x, 1.7),
    "hue of bytes": lambda x: tf.image.adjust_hue(tf.cast(x * 255, tf.uint8), 0.3),
    "flip": lambda x: tf.image.flip_left_right(tf.image.flip_up_down(x)),
    "turn": tf.image.rot90,
    "transpose": tf.image.transpose,
    "patches": lambda x: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 2, 1], "SAME"),
    "HSV and back": lambda x: tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)),
    "HSV": tf.image.rgb_to_hsv,
    "grey": tf.image.rgb_to_grayscale,
    "YUV": tf.image.rgb_to_yuv,
    "gradients": tf.image.image_gradients,
    "sobel": tf.image.sobel_edges,
    "standardization": tf.image.per_image_standardization,
    "dilation": lambda x: tf.nn.dilation2d(x, x[0, :2, :2], [1] * 4, "SAME", "NHWC", [1] * 4),
}


@pytest.mark.parametrize("name", TF_IMAGE)
def test_tf_image(name, xpu_device):
    """In a tf.function: with the CPU's results, and nothing computed there."""
    function = tf.function(TF_IMAGE[name])
    with tf.device("/cpu:0"):
        want = TF_IMAGE[name](tf.constant(IMAGES))
    with tf.device(xpu_device):
        x = tf.constant(IMAGES)
        with placement.record() as ran:
            got = function(x)
    assert placement.compute_ops_on(ran, "XPU")
    assert placement.compute_ops_on(ran, "CPU") == set()
    for g, w in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        if w.dtype == tf.uint8:
            np.testing.assert_array_equal(g, w)
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)


GRADIENTS = [name for name in TF_IMAGE if name.startswith("resize by")] + [
    "crop and resize",
    "dilation",
    "HSV",
]
# TensorFlow has no gradient for these.
NO_GRADIENT = ("area",)


@pytest.mark.parametrize("name", [n for n in GRADIENTS if not any(w in n for w in NO_GRADIENT)])
def test_gradients(name, xpu_device):
    results = []
    for device in (xpu_device, "/cpu:0"):
        with tf.device(device):
            x = tf.constant(IMAGES)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = TF_IMAGE[name](x)
                loss = tf.reduce_sum(y * y)
            results.append(tape.gradient(loss, x))
    np.testing.assert_allclose(*results, rtol=2e-4, atol=2e-4)


LAYERS = {
    **{
        f"Resizing {method}": lambda m=method: keras.layers.Resizing(7, 15, interpolation=m)
        for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3")
    },
    **{
        f"UpSampling2D {method}": lambda m=method: keras.layers.UpSampling2D((2, 3), interpolation=m)
        for method in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")
    },
    **{
        f"RandomRotation {mode}": lambda m=mode: keras.layers.RandomRotation(0.2, fill_mode=m, seed=1)
        for mode in ("reflect", "wrap", "constant", "nearest")
    },
    "RandomZoom": lambda: keras.layers.RandomZoom(0.3, 0.2, seed=1),
    "RandomTranslation": lambda: keras.layers.RandomTranslation(0.3, 0.2, seed=1),
    "RandomFlip": lambda: keras.layers.RandomFlip(seed=1),
    "RandomContrast": lambda: keras.layers.RandomContrast(0.4, value_range=(0, 1), seed=1),
    "RandomBrightness": lambda: keras.layers.RandomBrightness(0.4, value_range=(0, 1), seed=1),
    "RandomCrop": lambda: keras.layers.RandomCrop(7, 5, seed=1),
    "CenterCrop": lambda: keras.layers.CenterCrop(7, 5),
}


@pytest.mark.parametrize("name", LAYERS)
def test_keras_layers(name, xpu_device):
    """With the same seed a layer chooses the same on both devices."""
    results = []
    for device in (xpu_device, "/cpu:0"):
        with tf.device(device):
            layer = LAYERS[name]()
            function = tf.function(lambda x, layer=layer: layer(x, training=True))
            x = tf.constant(IMAGES)
            with placement.record() as ran:
                results.append(function(x).numpy())
            if device != "/cpu:0":
                assert placement.compute_ops_on(ran, "CPU") == set()
    np.testing.assert_allclose(*results, rtol=2e-5, atol=2e-5)
