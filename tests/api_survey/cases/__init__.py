"""All items, by the files of this folder."""

from tests.api_survey.cases import keras_layers, keras_ops, keras_training, models, tf_functions
from tests.api_survey.items import Item

ITEMS: list[Item] = [
    *keras_layers.ITEMS,
    *keras_training.ITEMS,
    *keras_ops.ITEMS,
    *tf_functions.ITEMS,
    *models.ITEMS,
]
