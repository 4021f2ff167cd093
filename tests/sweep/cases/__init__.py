"""The cases of the sweep, by op name: one table per family."""

from tests.sweep.cases import (
    array,
    gather_scatter,
    images,
    inplace,
    linalg,
    math,
    nets,
    nn,
    order,
    quantize,
    random,
    random_parameters,
    references,
    signal,
    sparse,
    special,
    state,
    tensor_arrays,
    tensor_lists,
    xla,
)

FAMILIES = {
    "math": math.CASES,
    "array": array.CASES,
    "gather_scatter": gather_scatter.CASES,
    "nn": nn.CASES,
    "nets": nets.CASES,
    "quantize": quantize.CASES,
    "random": random.CASES,
    "order": order.CASES,
    "random_parameters": random_parameters.CASES,
    "special": special.CASES,
    "state": state.CASES,
    "references": references.CASES,
    "inplace": inplace.CASES,
    "sparse": sparse.CASES,
    "tensor_arrays": tensor_arrays.CASES,
    "images": images.CASES,
    "linalg": linalg.CASES,
    "signal": signal.CASES,
    "tensor_lists": tensor_lists.CASES,
    "xla": xla.CASES,
}

CASES = {op: cases for family in FAMILIES.values() for op, cases in family.items()}
assert len(CASES) == sum(map(len, FAMILIES.values())), "an op has cases in two families"
