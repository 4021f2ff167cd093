"""Resource variables and the optimizer updates on them."""

import numpy as np
import tensorflow as tf

from tests.sweep.runner import CONDITION, Case, Var

SHAPES = [(), (7,), (33, 9)]


def assign():
    return [
        Case(lambda t, r, s=s: {"resource": Var(r.uniform(s, t["dtype"])), "value": r.uniform(s, t["dtype"])}, 0)
        for s in SHAPES
    ]


def apply(variables, scalars, grad=True, roundings=8.0, attrs=None, relative_to=CONDITION):
    """An optimizer update: `variables` name -> (low, high); `scalars` name -> value."""

    def make(t, r, shape):
        kwargs = {name: Var(r.uniform(shape, t["T"], low, high)) for name, (low, high) in variables.items()}
        kwargs.update({name: tf.cast(tf.constant(v), t["T"]) for name, v in scalars.items()})
        if grad:
            kwargs["grad"] = r.uniform(shape, t["T"])
        kwargs.update(attrs or {})
        return kwargs

    return [Case(lambda t, r, s=s: make(t, r, s), roundings, relative_to) for s in SHAPES]


def ftrl_magnitudes(args, exact):
    """linear grows by grad - (sqrt(accum + grad^2) - sqrt(accum)) / lr * var: two roots that are nearly equal."""
    var, grad, accum = np.abs(args["var"]), np.abs(args["grad"]), args["accum"] + args["grad"] ** 2
    root = np.sqrt(accum) / args["lr"]
    linear = np.abs(args["linear"]) + grad + (2 * root + 2 * args.get("l2_shrinkage", 0.0)) * var
    return [(linear + args["l1"]) / (root + 2 * args["l2"]), accum, linear]


def sparse_ftrl_magnitudes(args, exact):
    """The same for rows, a row's gradients as one. multiply_linear_by_lr leaves the linear term undivided."""
    grad = np.zeros_like(args["var"])
    np.add.at(grad, args["indices"].astype(np.int64), np.abs(args["grad"]))
    var, accum, linear = ftrl_magnitudes({**args, "grad": grad}, exact)
    return [var / args["lr"] if args.get("multiply_linear_by_lr") else var, accum, linear]


def sparse_apply(variables, scalars, flag=None, relative_to=CONDITION):
    """An optimizer update of rows, each named once, with the attribute `flag` on; and of rows named repeatedly, with it
    off. Between those steps a 16-bit value is rounded, so they are left to the wider types."""

    def make(t, r, shape, rows, on):
        kwargs = {name: Var(r.uniform(shape, t["T"], low, high)) for name, (low, high) in variables.items()}
        kwargs.update({name: tf.cast(tf.constant(v), t["T"]) for name, v in scalars.items() if name != "global_step"})
        if "global_step" in scalars:
            kwargs["global_step"] = tf.constant(scalars["global_step"], tf.int64)
        kwargs["grad"] = r.uniform((len(rows), *shape[1:]), t["T"])
        kwargs["indices"] = tf.constant(rows, t["Tindices"])
        if flag:
            kwargs[flag] = on
        return kwargs

    wide = (tf.float32, tf.float64, tf.complex64, tf.complex128)
    return [
        Case(lambda t, r: make(t, r, (300,), tuple(range(299, -1, -1)), True), 8, relative_to),
        Case(lambda t, r: make(t, r, (9, 5), (2, 2, 8, 2, 7), False), 24, relative_to, types=wide),
    ]


ANY, POSITIVE = (-2.0, 2.0), (0.1, 2.0)

CASES = {
    "AssignAddVariableOp": assign(),
    "AssignSubVariableOp": assign(),
    "ResourceApplyGradientDescent": [
        Case(
            lambda t, r, s=s: {
                "var": Var(r.uniform(s, t["T"])),
                "alpha": tf.cast(tf.constant(0.1), t["T"]),
                "delta": r.uniform(s, t["T"]),
            },
            2,
        )
        for s in SHAPES
    ],
    "ResourceApplyProximalGradientDescent": [
        Case(
            lambda t, r, s=s: {
                "var": Var(r.uniform(s, t["T"])),
                "alpha": tf.cast(tf.constant(0.1), t["T"]),
                "l1": tf.cast(tf.constant(0.05), t["T"]),
                "l2": tf.cast(tf.constant(0.1), t["T"]),
                "delta": r.uniform(s, t["T"]),
            },
            4,
        )
        for s in SHAPES
    ],
    "ResourceApplyMomentum": [
        c
        for nesterov in (False, True)
        for c in apply({"var": ANY, "accum": ANY}, {"lr": 0.1, "momentum": 0.9}, attrs={"use_nesterov": nesterov})
    ],
    "ResourceApplyKerasMomentum": [
        c
        for nesterov in (False, True)
        for c in apply({"var": ANY, "accum": ANY}, {"lr": 0.1, "momentum": 0.9}, attrs={"use_nesterov": nesterov})
    ],
    "ResourceApplyAdam": [
        c
        for nesterov in (False, True)
        for c in apply(
            {"var": ANY, "m": ANY, "v": POSITIVE},
            {"beta1_power": 0.9, "beta2_power": 0.99, "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3},
            attrs={"use_nesterov": nesterov},
        )
    ],
    "ResourceApplyAdamWithAmsgrad": apply(
        {"var": ANY, "m": ANY, "v": POSITIVE, "vhat": POSITIVE},
        {"beta1_power": 0.9, "beta2_power": 0.99, "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3},
    ),
    "ResourceApplyAdaMax": apply(
        {"var": ANY, "m": ANY, "v": POSITIVE},
        {"beta1_power": 0.9, "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3},
    ),
    "ResourceApplyRMSProp": apply(
        {"var": ANY, "ms": POSITIVE, "mom": ANY}, {"lr": 0.01, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3}
    ),
    "ResourceApplyCenteredRMSProp": apply(
        {"var": ANY, "mg": (0.0, 0.1), "ms": (1.0, 2.0), "mom": ANY},
        {"lr": 0.01, "rho": 0.95, "momentum": 0.5, "epsilon": 1e-1},
    ),
    "ResourceApplyAdagrad": apply({"var": ANY, "accum": POSITIVE}, {"lr": 0.1}),
    "ResourceApplyAdagradV2": apply({"var": ANY, "accum": POSITIVE}, {"lr": 0.1, "epsilon": 1e-3}),
    "ResourceApplyProximalAdagrad": apply({"var": ANY, "accum": POSITIVE}, {"lr": 0.1, "l1": 0.05, "l2": 0.1}),
    "ResourceApplyAdadelta": apply(
        {"var": ANY, "accum": POSITIVE, "accum_update": POSITIVE}, {"lr": 0.1, "rho": 0.9, "epsilon": 1e-3}
    ),
    "ResourceApplyFtrl": apply(
        {"var": ANY, "accum": POSITIVE, "linear": ANY},
        {"lr": 0.1, "l1": 0.05, "l2": 0.1, "lr_power": -0.5},
        relative_to=ftrl_magnitudes,
    ),
    "ResourceApplyFtrlV2": apply(
        {"var": ANY, "accum": POSITIVE, "linear": ANY},
        {"lr": 0.1, "l1": 0.05, "l2": 0.1, "l2_shrinkage": 0.01, "lr_power": -0.5},
        relative_to=ftrl_magnitudes,
    ),
    "ResourceApplyAdagradDA": [
        Case(
            lambda t, r, s=s, l1=l1: {
                "var": Var(r.uniform(s, t["T"])),
                "gradient_accumulator": Var(r.uniform(s, t["T"])),
                "gradient_squared_accumulator": Var(r.uniform(s, t["T"], *POSITIVE)),
                "grad": r.uniform(s, t["T"]),
                "lr": tf.cast(tf.constant(0.1), t["T"]),
                "l1": tf.cast(tf.constant(l1), t["T"]),
                "l2": tf.cast(tf.constant(0.1), t["T"]),
                "global_step": tf.constant(3, tf.int64),
            },
            8,
        )
        for s, l1 in zip(SHAPES, (0.0, -0.2, 0.2), strict=True)
    ],
    "ResourceCountUpTo": [
        Case(lambda t, r: {"resource": Var(tf.constant(41, t["T"])), "limit": 42, "T": t["T"]}, compare="bits")
    ],
    "ResourceSparseApplyProximalGradientDescent": sparse_apply({"var": ANY}, {"alpha": 0.1, "l1": 0.05, "l2": 0.1}),
    "ResourceSparseApplyMomentum": sparse_apply(
        {"var": ANY, "accum": ANY}, {"lr": 0.1, "momentum": 0.9}, "use_nesterov"
    ),
    "ResourceSparseApplyKerasMomentum": sparse_apply(
        {"var": ANY, "accum": ANY}, {"lr": 0.1, "momentum": 0.9}, "use_nesterov"
    ),
    "ResourceSparseApplyRMSProp": sparse_apply(
        {"var": ANY, "ms": POSITIVE, "mom": ANY}, {"lr": 0.01, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3}
    ),
    "ResourceSparseApplyCenteredRMSProp": sparse_apply(
        {"var": ANY, "mg": (0.0, 0.1), "ms": (1.0, 2.0), "mom": ANY},
        {"lr": 0.01, "rho": 0.95, "momentum": 0.5, "epsilon": 1e-1},
    ),
    "ResourceSparseApplyAdagrad": sparse_apply({"var": ANY, "accum": POSITIVE}, {"lr": 0.1}, "update_slots"),
    "ResourceSparseApplyAdagradV2": sparse_apply({"var": ANY, "accum": POSITIVE}, {"lr": 0.1, "epsilon": 1e-3}),
    "ResourceSparseApplyProximalAdagrad": sparse_apply(
        {"var": ANY, "accum": POSITIVE}, {"lr": 0.1, "l1": 0.05, "l2": 0.1}
    ),
    "ResourceSparseApplyAdagradDA": sparse_apply(
        {"var": ANY, "gradient_accumulator": ANY, "gradient_squared_accumulator": POSITIVE},
        {"lr": 0.1, "l1": 0.2, "l2": 0.1, "global_step": 3},
    ),
    "ResourceSparseApplyAdadelta": sparse_apply(
        {"var": ANY, "accum": POSITIVE, "accum_update": POSITIVE}, {"lr": 0.1, "rho": 0.9, "epsilon": 1e-3}
    ),
    "ResourceSparseApplyFtrl": sparse_apply(
        {"var": ANY, "accum": POSITIVE, "linear": ANY},
        {"lr": 0.1, "l1": 0.05, "l2": 0.1, "lr_power": -0.5},
        "multiply_linear_by_lr",
        sparse_ftrl_magnitudes,
    ),
    "ResourceSparseApplyFtrlV2": sparse_apply(
        {"var": ANY, "accum": POSITIVE, "linear": ANY},
        {"lr": 0.1, "l1": 0.05, "l2": 0.1, "l2_shrinkage": 0.01, "lr_power": -0.5},
        relative_to=sparse_ftrl_magnitudes,
    ),
    "ResourceApplyAddSign": apply({"var": ANY, "m": ANY}, {"lr": 0.1, "alpha": 1.0, "sign_decay": 0.9, "beta": 0.9}),
    "ResourceApplyPowerSign": apply(
        {"var": ANY, "m": ANY}, {"lr": 0.1, "logbase": 1.0, "sign_decay": 0.9, "beta": 0.9}
    ),
}
