"""Resizing, cropping and transforming of images, their colours, patches, dilation, and suppression of boxes."""

import dataclasses

import numpy as np
import tensorflow as tf

from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, Case

# The types for which there is more than one case: many there are of images, and what differs is the reading alone.
USUAL = (tf.float32, tf.uint8, tf.bfloat16)

# Height and width of the image and of the result; align_corners, half_pixel_centers.
SIZES = [
    ((3, 4), (5, 7), False, True),
    ((3, 4), (7, 5), True, False),
    ((7, 9), (3, 4), False, False),
    ((4, 5), (4, 5), False, True),
    ((1, 2), (6, 1), False, True),
    ((9, 8), (4, 3), True, False),
    ((1, 4), (6, 3), True, False),
]
CHANNELS = [3, 1, 4, 17, 3, 1, 2]


def of_largest(factor):
    """m: a multiple of the largest number in the first argument, whose weighted sums the results are."""

    def magnitudes(arguments, exact):
        first = next(v for v in arguments.values() if isinstance(v, np.ndarray) and v.size)
        largest = np.abs(first.astype(np.float64)).max()
        return [np.full(np.shape(e), factor * largest) for e in exact]

    return magnitudes


def _modes(align, half, has_half=True):
    return {"align_corners": align, **({"half_pixel_centers": half} if has_half else {})}


def resize(has_half=True, **how):
    """The same image and size with every scaling; the first case for all types."""
    cases = []
    for i, (size, to, align, half) in enumerate(SIZES):

        def make(t, r, shape=(2, *size, CHANNELS[i]), to=to, align=align, half=half):
            return {
                "images": r.uniform(shape, t["T"], -20, 100),
                "size": tf.constant(to),
                **_modes(align, half, has_half),
            }

        cases.append(Case(make, types=USUAL if i else (), **how))
    return cases


def resize_grad(nearest=False, **how):
    """A gradient is a sum over the result's pixels. (The CPU multiplies in float whatever the type: of a double, that
    is 2^29 times its own rounding.)"""
    cases = []
    for i, (size, to, align, half) in enumerate(SIZES):

        def make(t, r, size=size, to=to, align=align, half=half, channels=(3, 1, 6)[i % 3]):
            of = t["T"] if nearest else tf.float32
            back = (
                {"size": tf.constant(size)} if nearest else {"original_image": tf.zeros((2, *size, channels), t["T"])}
            )
            return {"grads": r.uniform((2, *to, channels), of, -2, 2), **back, **_modes(align, half)}

        n = terms(int(np.prod(to))) + 4
        narrow = tuple(d for d in (tf.float32, tf.float16, tf.bfloat16) if not i or d in USUAL)
        cases.append(Case(make, n, types=narrow, **how))
        cases.append(Case(make, n if nearest else n * 2**29, types=(tf.float64,), **how))
    return cases


def scale_and_translate():
    cases = []
    filters = ["lanczos3", "lanczos1", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
    for i, name in enumerate(filters):
        for antialias in (True, False):

            def make(t, r, name=name, antialias=antialias, i=i):
                return {
                    "images": r.uniform((2, 7, 6, 3), t["T"], -20, 100),
                    "size": tf.constant([5, 9]),
                    "scale": tf.constant([(0.4, 0.7, 1.9)[i % 3], (1.3, 0.5)[i % 2]]),
                    "translation": tf.constant([0.3, -0.6]),
                    "kernel_type": name,
                    "antialias": antialias,
                }

            first = not cases
            # The weights are a few operations each and are divided by their sum; they may be negative.
            cases.append(Case(make, terms(42) + 24, of_largest(4), types=() if first else (tf.float32,)))
    return cases


def scale_and_translate_grad():
    return [
        Case(
            lambda t, r, name=name: {
                "grads": r.uniform((2, 5, 9, 2), tf.float32, -2, 2),
                "original_image": tf.zeros((2, 7, 6, 2), t["T"]),
                "scale": tf.constant([0.7, 1.3]),
                "translation": tf.constant([0.3, -0.6]),
                "kernel_type": name,
                "antialias": True,
            },
            terms(45) + 24,
            of_largest(4),
        )
        for name in ("lanczos3", "triangle")
    ]


# Within, beyond an edge, turned over, of no extent, of all the image.
BOXES = [[0.1, 0.2, 0.7, 0.9], [-0.3, 0.5, 0.6, 1.2], [0.8, 0.9, 0.1, 0.2], [0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 1.0, 1.0]]
CROPS = [("bilinear", (3, 4)), ("nearest", (4, 3)), ("bilinear", (1, 5)), ("nearest", (1, 1))]


def _boxes():
    return {"boxes": tf.constant(BOXES), "box_ind": tf.constant([1, 0, 1, 1, 0])}


def crop():
    cases = []
    for i, (method, size) in enumerate(CROPS):

        def make(t, r, method=method, size=size):
            return {
                "image": r.uniform((2, 6, 5, 3), t["T"], -20, 100),
                **_boxes(),
                "crop_size": tf.constant(size),
                "method": method,
                "extrapolation_value": -1.5,
            }

        cases.append(Case(make, compare="bits", types=USUAL if i else ()))
    return cases


def crop_grad_image():
    cases = []
    for method, size in CROPS:

        def make(t, r, method=method, size=size):
            return {
                "grads": r.uniform((5, *size, 3), tf.float32, -2, 2),
                **_boxes(),
                "image_size": tf.constant([2, 6, 5, 3]),
                "T": t["T"],
                "method": method,
            }

        # Half is summed as stored by the CPU, here in float.
        n = terms(5 * size[0] * size[1]) + 4
        cases.append(Case(make, n, of_largest(8), types=(tf.float32,)))
        cases.append(Case(make, n * 2**29, of_largest(8), types=(tf.float64,)))
        cases.append(Case(make, n, of_largest(8), stored=True, types=(tf.float16,)))
    return cases


def crop_grad_boxes():
    def make(t, r, size=(3, 4)):
        return {
            "grads": r.uniform((5, *size, 3), tf.float32, -2, 2),
            "image": r.uniform((2, 6, 5, 3), t["T"], 0, 9),
            **_boxes(),
            "method": "bilinear",
        }

    def magnitudes(arguments, exact):
        gradient = np.abs(arguments["grads"]).sum(axis=(1, 2, 3))
        return [np.outer(gradient, np.full(4, 2 * 9 * 5.0))]

    return [
        Case(make, terms(36) + 8, magnitudes),
        Case(lambda t, r: make(t, r, (1, 2)), terms(6) + 8, magnitudes, types=(tf.float32,)),
    ]


def transform(version):
    cases = []
    transforms = [[0.9, -0.3, 1.2, 0.2, 1.1, -2.4, 0.01, -0.02], [1.0, 0.0, -0.5, 0.0, 1.0, 0.5, 0.0, 0.0]]
    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for interpolation in ("BILINEAR", "NEAREST"):
            for one in (False, True):

                def make(t, r, mode=mode, interpolation=interpolation, one=one):
                    return {
                        "images": r.uniform((2, 5, 6, 3), t["dtype"], 0, 200),
                        "transforms": tf.constant(transforms[1:] if one else transforms),
                        "output_shape": tf.constant([9, 8]),
                        "interpolation": interpolation,
                        "fill_mode": mode,
                        **({"fill_value": tf.constant(7.7)} if version == 3 else {}),
                    }

                all_types = mode in ("CONSTANT", "WRAP") and not one
                cases.append(Case(make, compare="bits", types=() if all_types else (tf.float32,)))
    return cases


def colours(argument, high=1.0, **how):
    def make(t, r):
        x = r.uniform((4, 5, 3), t["T"], 0, high).numpy()
        # Greys, and pixels of which two are equal.
        x[0, :, 1] = x[0, :, 0]
        x[1, :, 2] = x[1, :, 1]
        x[2, :2] = x[2, :2, :1]
        x[3, 0] = 0
        return {argument: tf.constant(x, t["T"])}

    return [Case(make, **how), Case(lambda t, r: {argument: r.uniform((3,), t["T"], 0, high)}, **how)]


def adjust(argument, values, channels=3):
    def make(t, r, value):
        return {"images": r.uniform((2, 4, 5, channels), t["T"], 0, 1), argument: tf.constant(value)}

    # Sixths of a circle and back: numbers up to 6, of which a fraction is what a result is made of.
    return [Case(lambda t, r, v=v: make(t, r, v), terms(20) + 8, of_largest(12)) for v in values]


def patches(spatial, types):
    cases = []
    for ksize, stride, rate, padding in [(2, 1, 1, "VALID"), (3, 2, 1, "SAME"), (2, 3, 2, "SAME"), (1, 2, 1, "VALID")]:
        if spatial == 3 and rate > 1:
            continue

        def make(t, r, ksize=ksize, stride=stride, rate=rate, padding=padding):
            shape = (2, 5, 4, 2) if spatial == 2 else (1, 4, 3, 4, 2)
            return {
                "images" if spatial == 2 else "input": r.uniform(shape, t["T"], -50, 50),
                "ksizes": [1, *[ksize] * spatial, 1],
                "strides": [1, *[stride] * spatial, 1],
                **({"rates": [1, rate, rate, 1]} if spatial == 2 else {}),
                "padding": padding,
            }

        cases.append(Case(make, 0, types=types))
    return cases


NARROW = (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint16, tf.uint32, tf.uint64)


def image_patches():
    """All of them for few types; of bools the CPU has none, where they are those of the same numbers."""

    def expect(arguments):
        numbers = tf.cast(arguments["images"], tf.uint8)
        return [tf.cast(tf.raw_ops.ExtractImagePatches(**{**arguments, "images": numbers}), tf.bool)]

    cases = patches(2, (tf.float32, tf.complex128))
    one, same, rated = cases[:3]
    return [
        *cases,
        dataclasses.replace(rated, types=(*USUAL[1:], tf.float16, tf.float64, tf.complex64)),
        dataclasses.replace(same, types=NARROW),
        *(dataclasses.replace(case, types=(tf.bool,), expect=expect) for case in (one, same)),
    ]


def volume_patches():
    cases = patches(3, (tf.float32,))
    return [*cases, dataclasses.replace(cases[1], types=(*USUAL[1:], tf.float16, tf.float64, *NARROW))]


def dilation(gradient):
    """Whole numbers, so that no sum is rounded, and many of them are equal."""
    cases = []
    for window, stride, rate, padding in [
        ((2, 3), 1, 1, "VALID"),
        ((3, 2), 2, 1, "SAME"),
        ((2, 2), 1, 2, "SAME"),
        ((3, 3), 3, 3, "SAME"),
    ]:
        shape = (2, 6, 5, 3) if rate < 3 else (1, 2, 1, 2)

        def make(t, r, shape=shape, window=window, stride=stride, rate=rate, padding=padding):
            arguments = {
                "input": r.uniform(shape, t["T"], -8, 8),
                "filter": r.uniform((*window, shape[3]), t["T"], -3, 3),
                "strides": [1, stride, stride, 1],
                "rates": [1, rate, rate, 1],
                "padding": padding,
            }
            arguments = {k: tf.round(v) if isinstance(v, tf.Tensor) else v for k, v in arguments.items()}
            if gradient:
                out = tf.raw_ops.Dilation2D(**arguments).shape
                arguments["out_backprop"] = tf.round(r.uniform(out, t["T"], 1, 6))
            return arguments

        cases.append(Case(make, 0))
    return cases


def suppression(argument="boxes", threshold="iou_threshold", scored=True, **attributes):
    """Some scores are equal, some not numbers, some boxes the same or without area."""
    cases = []
    for count, most, iou in [(40, 12, 0.4), (40, 100, 0.7), (3, 0, 0.5), (0, 4, 0.5)]:

        def make(t, r, count=count, most=most, iou=iou):
            corner = r.uniform((count, 2), tf.float32, 0, 4).numpy()
            boxes = np.concatenate([corner, corner + r.uniform((count, 2), tf.float32, -1, 2).numpy()], axis=1)
            scores = np.round(r.uniform((count,), tf.float32, 0, 1).numpy() * 20) / 20
            boxes[5:9] = boxes[1:2]
            boxes[9:12, 2] = boxes[9:12, 0]
            scores[20:23] = [np.nan, -np.inf, np.finfo(np.float32).min][: len(scores[20:23])]
            if argument == "overlaps":
                boxes = r.uniform((count, count), tf.float32, 0, 1).numpy()
            return {
                argument: tf.constant(boxes, tf.float32),
                "scores": tf.constant(scores, tf.float32),
                "max_output_size": tf.constant(most),
                threshold: tf.constant(iou),
                **({"score_threshold": tf.constant(0.2)} if scored else {}),
                **attributes,
            }

        cases.append(Case(make, 0))
    return cases


def selection(**attributes):
    """Boxes of all classes or of each; some scores are not numbers, some boxes the same or without area."""
    cases = []
    for count, sets, classes, most, total, iou in [
        (40, 1, 3, 12, 20, 0.4),
        (40, 3, 3, 100, 200, 0.7),
        (0, 1, 2, 4, 6, 0.5),
    ]:

        def make(t, r, count=count, sets=sets, classes=classes, most=most, total=total, iou=iou):
            corner = r.uniform((2, count, sets, 2), tf.float32, -1, 2).numpy()
            boxes = np.concatenate([corner, corner + r.uniform(corner.shape, tf.float32, -1, 2).numpy()], axis=-1)
            # No scores are equal: TensorFlow promises no order of those.
            scores = r.uniform((2, count, classes), tf.float32, 0, 1).numpy()
            boxes[:, 5:9] = boxes[:, 1:2]
            boxes[:, 9:12, :, 2] = boxes[:, 9:12, :, 0]
            scores[:, 20:21], scores[:, 21:22], scores[:, 22:23, 0] = np.nan, -np.inf, np.inf
            return {
                "boxes": tf.constant(boxes, tf.float32),
                "scores": tf.constant(scores, tf.float32),
                "max_output_size_per_class": tf.constant(most),
                "max_total_size": tf.constant(total),
                "iou_threshold": tf.constant(iou),
                "score_threshold": tf.constant(0.2),
                **attributes,
            }

        cases.append(Case(make, 0))
    return cases


CASES = {
    "ResizeNearestNeighbor": resize(roundings=0),
    "ResizeNearestNeighborGrad": resize_grad(nearest=True, relative_to=ABSOLUTE),
    "ResizeBilinear": resize(compare="bits"),
    "ResizeBilinearGrad": resize_grad(relative_to=of_largest(30)),
    # Weights of both signs, whose magnitudes add up to less than 1.4 along each axis.
    "ResizeBicubic": resize(roundings=terms(16) + 8, relative_to=of_largest(2)),
    "ResizeBicubicGrad": resize_grad(relative_to=of_largest(60)),
    "ResizeArea": resize(has_half=False, roundings=terms(16) + 4, relative_to=of_largest(1)),
    "ScaleAndTranslate": scale_and_translate(),
    "ScaleAndTranslateGrad": scale_and_translate_grad(),
    "CropAndResize": crop(),
    "CropAndResizeGradImage": crop_grad_image(),
    "CropAndResizeGradBoxes": crop_grad_boxes(),
    "ImageProjectiveTransformV2": transform(2)[:4],
    "ImageProjectiveTransformV3": transform(3),
    # A hue is a fraction of the circle, whatever the others are.
    "RGBToHSV": colours("images", roundings=8, relative_to=of_largest(2)),
    "HSVToRGB": colours("images", roundings=8, relative_to=of_largest(6)),
    "AdjustHue": adjust("delta", [0.2, -0.45, 0.0, 1.0]),
    "AdjustSaturation": adjust("scale", [0.5, 3.0]),
    "AdjustContrastv2": adjust("contrast_factor", [0.5, 3.0]) + adjust("contrast_factor", [2.0], channels=5),
    "ExtractImagePatches": image_patches(),
    "ExtractVolumePatches": volume_patches(),
    "Dilation2D": dilation(gradient=False),
    "Dilation2DBackpropInput": dilation(gradient=True),
    "Dilation2DBackpropFilter": dilation(gradient=True),
    "NonMaxSuppressionV2": suppression(scored=False),
    "NonMaxSuppressionV3": suppression(),
    "NonMaxSuppressionV4": suppression() + suppression(pad_to_max_output_size=True),
    "NonMaxSuppressionWithOverlaps": suppression("overlaps", "overlap_threshold"),
    "CombinedNonMaxSuppression": selection() + selection(pad_per_class=True, clip_boxes=False),
}
