"""Calls that the XPU answers otherwise than TensorFlow's CPU kernel, on purpose."""

from __future__ import annotations

import re

# (op, kind of verdict, words in the call or in what is said of it), regular expressions: why.
EXCUSED: dict[tuple[str, str, str], str] = {
    # The CPU has not what the XPU has, and says so.
    (
        ".*",
        "accepted by the XPU alone|another exception",
        "Default \\w+ only supports N|only supports? N|only supports equal length strides|CPU implementations? "
        "(of|do)|does not support dilations|No WhereOp available|Grouped/Depthwise Convolutions are not supported",
    ): "the CPU's kernel refuses a format, a type, a stride or a dilation that the XPU has",
    (
        "_FusedBatchNormEx",
        "accepted by the XPU alone",
        "Missing 0-th output",
    ): "the CPU's kernel for these arguments does nothing, without an error",
    (
        "SparseSoftmaxCrossEntropyWithLogits",
        "accepted by the XPU alone",
        "Received a label value",
    ): "NaN in the rows of such labels, as TensorFlow promises for accelerators",
    # The CPU does not look, and computes with what lies beside its arguments.
    (
        "BlockLSTMGrad(V2)?",
        "accepted by the CPU alone",
        r"dims?(_size)?\(",
    ): "the CPU does not look at the shapes of all gradients",
    (
        "LSTMBlockCell(Grad)?",
        "accepted by the CPU alone",
        r"wc[ifo]\.dim_size\(",
    ): "the CPU does not look at the lengths of the peepholes' weights",
    ("AvgPoolGrad", "accepted by the CPU alone", "grad shape"): "the CPU does not look at the gradient's shape",
    ("AvgPoolGrad", "accepted by the CPU alone", "must be positive|depth dimension"): "nor at its windows",
    (
        "Resource(Scatter(Add|Sub|Mul|Div|Min|Max|Update)|ApplyAdadelta)",
        "accepted by the CPU alone",
        "Must have updates|do not have the same shape",
    ): "the CPU does not look at the shape of one argument, and goes on in the row or variable behind",
    (
        "(Resource)?SparseApplyProximalGradientDescent",
        "accepted by the CPU alone",
        "grad must have the same number of dimensions as var",
    ): "the CPU does not look at the shape of one argument, and goes on in the row or variable behind",
    (
        "MaxPoolGradGrad(V2)?",
        "another exception",
        "ksize is .*batch dimension.*must be positive",
    ): "of two mistakes each names another one first",
    ("ResourceCountUpTo", ".*", "the variable is of type"): "the CPU takes the bytes for those of another type",
    (
        "Stateless.*V[23]",
        "accepted by the CPU alone",
        "counter must be a vector with length at least 2",
    ): "the CPU takes a counter of one number, and as its second one what lies behind it",
    (
        "DepthwiseConv2dNative.*",
        "accepted by the CPU alone",
        "dilations",
    ): "the CPU takes no notice of dilations in the gradients, nor of their number",
    (
        "DepthwiseConv2dNative",
        "accepted by the CPU alone",
        "filter must not have zero elements",
    ): "oneDNN's kernel, which TensorFlow takes where it may, refuses it, too",
    (
        "DepthwiseConv2dNativeBackpropInput",
        "accepted by the XPU alone",
        "filter is empty",
    ): "oneDNN's kernel gives zeros, too",
    (
        "ImageProjectiveTransformV[23]",
        "accepted by the CPU alone",
        "Invalid (mode|interpolation)",
    ): "the CPU logs an error, and takes whatever its member happens to be",
    ("I?R?FFT[23]?D?", "other results", "empty"): "the CPU pads nothing with memory that it has not written",
    (
        "MaxPool(3D)?GradGrad(V2)?",
        "other results",
        "ksize is .*2147483647",
    ): "the end of such a window overflows the CPU's integers",
    # Arguments outside of what an op is defined for.
    ("LRNGrad", "other results", "(bias|alpha) is -"): "a power of what is negative",
    ("(Lower|Upper)Bound", "other results", "sorted_inputs"): "a search among numbers that are not sorted",
    ("TopKV2", "other results", "sorted is False"): "the order is any",
    (
        "Sparse(Reorder|Reshape)",
        "other results",
        r"-?\d{10,}",
    ): "indices or a shape whose products overflow",
    ("Dilation2D.*", "other results", "filter is empty"): "a maximum over nothing",
    (
        "(RGBToHSV|HSVToRGB|AdjustHue|AdjustSaturation)",
        "other results",
        "nan|inf",
    ): "which of a NaN and a number is the larger one goes by the CPU's vectors",
    # The arguments that the sweep does not ask, or says otherwise.
    (
        "(Resource)?SparseApply.*",
        "other results",
        "b?float16.* indices has an element",
    ): "a row named twice, of 16 bits: the steps between are rounded (tests/sweep/cases/state.py)",
    ("Round", "other results", "int(8|16|32|64)'|uint"): "the CPU's Round of integers is 0",
    ("(SelfAdjointEigV2|Svd)", "other shapes", ""): "what is not computed has the shape that TensorFlow infers, [0]",
}


def excused(call, verdict) -> tuple[str, str, str] | None:
    """The row by which a verdict is right all the same."""
    text = f"{call} {verdict.details}"
    for op, kind, words in EXCUSED:
        if re.fullmatch(op, call.op) and re.fullmatch(kind, verdict.kind) and re.search(words, text):
            return op, kind, words
    return None
