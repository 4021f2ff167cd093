"""The losses, metrics, optimizers and learning-rate schedules of Keras."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from tests.api_survey.items import Item, functions, words

LOSSES = [
    *(
        f"{name}()(y, x)"
        for name in words(
            "CosineSimilarity Hinge Huber LogCosh MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError "
            "SquaredHinge"
        )
    ),
    *(f"{name}()(p, q)" for name in ("MeanSquaredLogarithmicError", "KLDivergence", "Poisson")),
    *(f"{name}()(binary, p)" for name in ("BinaryCrossentropy", "BinaryFocalCrossentropy", "Dice", "Tversky")),
    "BinaryCrossentropy(from_logits=True, label_smoothing=0.1)(binary, x)",
    *(f"Categorical{name}()(onehot, q)" for name in ("Crossentropy", "FocalCrossentropy", "Hinge")),
    "CategoricalGeneralizedCrossEntropy()(labels, q)",
    "SparseCategoricalCrossentropy()(labels, q)",
    "SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)(labels, x)",
    "Circle()(labels, x)",
    "CTC()(tokens[:, :2] + 1, seq)",
]
LOSSES_SKIPPED = {"Loss": "computes nothing"}

METRICS = [
    *((f"{name}()", "y x") for name in words("CosineSimilarity Hinge LogCoshError MeanAbsoluteError")),
    *((f"{name}()", "y x") for name in words("MeanAbsolutePercentageError MeanSquaredError SquaredHinge R2Score")),
    *((f"{name}()", "y x") for name in words("RootMeanSquaredError PearsonCorrelation ConcordanceCorrelation")),
    *((f"{name}()", "p q") for name in words("MeanSquaredLogarithmicError KLDivergence Poisson")),
    *((f"{name}()", "binary p") for name in words("AUC BinaryAccuracy BinaryCrossentropy Precision Recall")),
    *((f"{name}()", "binary p") for name in words("FalseNegatives FalsePositives TrueNegatives TruePositives")),
    *((f"{name}(0.5)", "binary p") for name in ("PrecisionAtRecall", "RecallAtPrecision")),
    *((f"{name}(0.5)", "binary p") for name in ("SensitivityAtSpecificity", "SpecificityAtSensitivity")),
    ("AUC(curve='PR', multi_label=True)", "binary p"),
    *((f"{name}()", "onehot q") for name in words("CategoricalAccuracy CategoricalCrossentropy CategoricalHinge")),
    *((f"{name}()", "onehot q") for name in ("F1Score", "FBetaScore")),
    ("TopKCategoricalAccuracy(2)", "onehot q"),
    *((f"{name}()", "labels q") for name in ("SparseCategoricalAccuracy", "SparseCategoricalCrossentropy")),
    ("SparseTopKCategoricalAccuracy(2)", "labels q"),
    ("Accuracy()", "i j"),
    ("BinaryIoU()", "binary p"),
    ("IoU(6, [0, 1])", "i j"),
    ("MeanIoU(6)", "i j"),
    ("OneHotIoU(6, [0, 1])", "onehot q"),
    ("OneHotMeanIoU(6)", "onehot q"),
    ("MeanMetricWrapper(lambda a, b: a * b)", "x y"),
    ("Mean()", "x"),
    ("Sum()", "x"),
]
METRICS_SKIPPED = {"Metric": "computes nothing"}

OPTIMIZERS = [
    *(f"{name}(0.1)" for name in words("Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion Muon Nadam")),
    "RMSprop(0.1, momentum=0.9, centered=True)",
    "SGD(0.1, momentum=0.9, nesterov=True)",
    "ScheduleFreeAdamW(0.1)",
    "Adam(0.1, amsgrad=True, clipnorm=0.5, use_ema=True, weight_decay=0.1)",
    "Adam(0.1, global_clipnorm=0.5, gradient_accumulation_steps=2)",
    "LossScaleOptimizer(Adam(0.1))",
    "MultiOptimizer(OptimizerMap(SGD(0.1)))",
    *(
        f"SGD(schedules.{schedule})"
        for schedule in (
            "CosineDecay(0.1, 10, warmup_target=0.2, warmup_steps=2)",
            "CosineDecayRestarts(0.1, 2)",
            "ExponentialDecay(0.1, 2, 0.9)",
            "InverseTimeDecay(0.1, 2, 0.9)",
            "PiecewiseConstantDecay([1, 2], [0.3, 0.2, 0.1])",
            "PolynomialDecay(0.1, 5)",
        )
    ),
]
OPTIMIZERS_SKIPPED = {"Optimizer": "computes nothing", "OptimizerMap": "a table of the others"}


def metric(text: str) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        made = eval(text, dict(vars(keras.metrics)))

        def update(*arguments: Any) -> Any:
            made.update_state(*arguments)
            made.update_state(*arguments)
            return made.result()

        return update

    return build


def optimizer(text: str, names: Mapping[str, Any]) -> Callable[[], Callable[..., Any]]:
    """Three steps on a matrix and a vector; returns those and the slots."""

    def build() -> Callable[..., Any]:
        made = eval(text, dict(names))
        variables = [keras.Variable(tf.ones([4, 6])), keras.Variable(tf.zeros([6]))]
        made.build(variables)

        def steps(x: tf.Tensor, v: tf.Tensor) -> list[tf.Tensor]:
            for factor in (1.0, 0.5, -0.25):
                made.apply([x * factor, v * factor], variables)
            states = [*variables, *made.variables]
            return [tf.identity(variable.value) for variable in states if variable.dtype != "string"]

        return steps

    return build


ITEMS = [
    *functions("keras.losses", vars(keras.losses), LOSSES),
    *(Item("keras.metrics", text, metric(text), tuple(names.split()), trains=False) for text, names in METRICS),
    *(
        Item("keras.optimizers", text, optimizer(text, vars(keras.optimizers)), ("x", "v"), trains=False)
        for text in OPTIMIZERS
    ),
]
