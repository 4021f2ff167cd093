"""Parts of networks: positions of maxima, second gradients of pooling, local responses, recurrent cells, CTC."""

import numpy as np
import tensorflow as tf

from tests.sweep.cases.nn import pools
from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, Case


def distinct(r, shape, dtype):
    """All values differ, as far as the type has so many; a maximum is where it is for every device."""
    count = int(np.prod(shape))
    most = {tf.float16: 2048, tf.bfloat16: 256}.get(dtype, count)
    return tf.reshape(tf.cast(r.permutation(count) % most, dtype), shape)


def windows(op_rank, few):
    """(shape, attributes) of a few of the pools; with few values one image of one channel, whose values differ."""
    for shape, ksize, strides, padding in list(pools(op_rank))[:3]:
        shape = (1, *shape[1:-1], 1) if few else (*shape[:-1], 3)
        yield shape, {"ksize": ksize, "strides": strides, "padding": padding}


def pooled(x, attrs):
    f = tf.raw_ops.MaxPool3D if len(x.shape) == 5 else tf.raw_ops.MaxPool
    return tf.cast(f(input=tf.cast(x, tf.float32), **attrs), x.dtype)


def positions(x, attrs, in_batch):
    wide = tf.cast(x, tf.float32)
    return tf.raw_ops.MaxPoolWithArgmax(input=wide, **attrs, include_batch_in_index=in_batch).argmax


def with_argmax(op):
    cases = []
    for number in range(3):
        for in_batch in (False, True):

            def make(t, r, number=number, in_batch=in_batch):
                shape, attrs = list(windows(2, False))[number]
                x = distinct(r, shape, t["T"])
                both = {**attrs, "include_batch_in_index": in_batch}
                if op == "MaxPoolWithArgmax":
                    return {"input": x, **both, "Targmax": t["Targmax"]}
                argmax = positions(x, attrs, in_batch)
                grad = r.uniform(shape if op == "MaxPoolGradGradWithArgmax" else argmax.shape, t["T"])
                return {"input": x, "grad": grad, "argmax": argmax, **both}

            cases.append((make, in_batch))
    if op == "MaxPoolGradWithArgmax":
        # Windows of 3 that are 2 apart: a maximum is that of 4 at most, added to 0.
        return [Case(make, 4, ABSOLUTE, stored=True) for make, _ in cases]
    if op == "MaxPoolWithArgmax":
        return [Case(make, compare="bits") for make, _ in cases]

    def gathered(args):  # TensorFlow has no such CPU kernel
        grad = args["grad"]
        flat = tf.reshape(grad, [1, -1] if args["include_batch_in_index"] else [grad.shape[0], -1])
        argmax = args["argmax"]
        found = tf.gather(flat, tf.reshape(argmax, [flat.shape[0], -1]), axis=1, batch_dims=1)
        return [tf.reshape(found, argmax.shape)]

    return [Case(make, compare="bits", expect=gathered) for make, _ in cases]


def second_gradient(op_rank, v2=False):
    cases = []
    for number in range(3):

        def make(t, r, number=number):
            few = t["T"] in (tf.float16, tf.bfloat16)
            shape, attrs = list(windows(op_rank, few))[number]
            x = distinct(r, shape, t["T"])
            y = pooled(x, attrs)
            if v2:
                attrs = {**attrs, "ksize": tf.constant(attrs["ksize"]), "strides": tf.constant(attrs["strides"])}
            return {"orig_input": x, "orig_output": y, "grad": r.uniform(shape, t["T"]), **attrs}

        cases.append(Case(make, compare="bits"))
    return cases


# (shape, depth_radius, bias, alpha, beta)
RESPONSES = [
    ((2, 3, 3, 7), 2, 1.0, 0.5, 0.5),
    ((1, 2, 2, 33), 5, 2.0, 0.1, 0.75),
    ((2, 2, 1, 4), 9, 1.5, 1.0, 1.0),
]


def lrn(gradient):
    """Roundings: the sum of 2r + 1 squares, 1 more for each, the factor and the bias; the product. The power is of 1 to
    100, so that the logarithm's error is at most 5 times as large. A gradient has a second sum of products of 3.
    """
    cases = []
    for shape, radius, bias, alpha, beta in RESPONSES:
        attrs = {"depth_radius": radius, "bias": bias, "alpha": alpha, "beta": beta}

        def make(t, r, shape=shape, attrs=attrs):
            x = r.uniform(shape, t["T"], -2, 2)
            if not gradient:
                return {"input": x, **attrs}
            y = tf.cast(tf.raw_ops.LRN(input=tf.cast(x, tf.float32), **attrs), t["T"])
            return {"input_grads": r.uniform(shape, t["T"]), "input_image": x, "output_image": y, **attrs}

        window = min(2 * radius + 1, shape[-1])
        power = terms(window) + 3 + 10
        cases.append(
            Case(
                make,
                power + 2 if not gradient else 2 * power + terms(window) + 5,
                gradient_sizes if gradient else ABSOLUTE,
            )
        )
    return cases


def gradient_sizes(args, exact):
    """|dy| norm^-beta + 2 alpha beta |x| sum |dy y| / norm, as the difference of the two would be without its sign."""
    x, dy, y = (np.abs(args[k].astype(np.float64)) for k in ("input_image", "input_grads", "output_image"))
    radius, alpha, beta = args["depth_radius"], args["alpha"], args["beta"]

    def around(v):
        padded = np.pad(v, [(0, 0)] * 3 + [(radius, radius)])
        return sum(padded[..., i : i + v.shape[-1]] for i in range(2 * radius + 1))

    norm = args["bias"] + alpha * around(x * x)
    return [dy * norm**-beta + 2 * alpha * beta * x * around(dy * y / norm)]


# (inputs, cells, batch, steps, peephole, cell_clip)
RECURRENT = [(3, 4, 2, 3, False, 3.0), (5, 2, 3, 2, True, 0.4), (1, 6, 1, 1, True, 0.0)]


def lstm(op):
    """Roundings: a step's gates are sums of inputs + cells products and 3 more. They go through functions with a slope
    of 1 at most and 2 roundings of their own. Then come 8 more, and each step goes through those before it. For half,
    the stored values count: two products and the state, or the gates' gradients, a product and its sum.
    """
    cases = []
    sequence, gradient, second = op.startswith("Block"), "Grad" in op, op.endswith("V2")
    for inputs, cells, batch, steps, peephole, clip in RECURRENT:

        def make(t, r, inputs=inputs, cells=cells, batch=batch, steps=steps, peephole=peephole, clip=clip):
            dtype = t["T"]
            time = (steps,) if sequence else ()
            kwargs = {
                "x": r.uniform((*time, batch, inputs), dtype, -1, 1),
                "cs_prev": r.uniform((batch, cells), dtype, -1, 1),
                "h_prev": r.uniform((batch, cells), dtype, -1, 1),
                "w": r.uniform((inputs + cells, 4 * cells), dtype, -1, 1),
                **{name: r.uniform((cells,), dtype, -1, 1) for name in ("wci", "wcf", "wco")},
                "b": r.uniform((4 * cells,), dtype, -1, 1),
            }
            if sequence:
                kwargs["seq_len_max"] = tf.constant(steps, tf.int64)
            if not gradient:
                forget = {} if second else {"forget_bias": 0.5}
                return {**kwargs, **forget, "cell_clip": clip, "use_peephole": peephole}
            given = ["i", "cs", "f", "o", "ci", "co", *(["h"] if sequence else [])]
            state = (*time, batch, cells)
            for name in given:
                kwargs[name] = r.uniform(state, dtype, 0.1, 0.9)
            for name in ("cs_grad", "h_grad"):
                kwargs[name] = r.uniform(state, dtype, -1, 1)
            return {**kwargs, "use_peephole": peephole}

        def roundings(args, inputs=inputs, cells=cells, batch=batch, steps=steps):
            if args["x"].dtype == tf.float16:
                return 4 * steps + 2
            return (terms(inputs + cells if not gradient else 4 * cells) + 16) * steps + batch * steps

        cases.append(Case(make, roundings, unit_sizes if not gradient else lstm_gradient_sizes, stored=True))
    return cases


def unit_sizes(args, exact):
    """The sums before the functions, 1 for each function's own."""
    largest = max(1, *(np.abs(args[name]).max() for name in ("x", "h_prev", "cs_prev") if name in args))
    return [np.full(e.shape, 1 + largest) for e in exact]


def lstm_gradient_sizes(args, exact):
    """All factors are at most 1: each output as large as its largest element, and the sums that it is of."""
    return [np.full(e.shape, 1 + np.abs(e).max(initial=0)) for e in exact]


def gru(gradient):
    """As of LSTM cells."""
    cases = []
    for inputs, cells, batch in [(3, 4, 2), (5, 2, 3), (1, 6, 1)]:

        def make(t, r, inputs=inputs, cells=cells, batch=batch):
            dtype = t["T"]
            kwargs = {
                "x": r.uniform((batch, inputs), dtype, -1, 1),
                "h_prev": r.uniform((batch, cells), dtype, -1, 1),
                "w_ru": r.uniform((inputs + cells, 2 * cells), dtype, -1, 1),
                "w_c": r.uniform((inputs + cells, cells), dtype, -1, 1),
                "b_ru": r.uniform((2 * cells,), dtype, -1, 1),
                "b_c": r.uniform((cells,), dtype, -1, 1),
            }
            if gradient:
                kwargs |= {name: r.uniform((batch, cells), dtype, 0.1, 0.9) for name in ("r", "u", "c", "d_h")}
            return kwargs

        n = 2 * terms(inputs + cells) + 12 if not gradient else terms(cells) + terms(2 * cells) + 12
        cases.append(Case(make, n, unit_sizes if not gradient else lstm_gradient_sizes))
    return cases


# (time, batch, classes, labels of each sequence, lengths, attributes)
SEQUENCES = [
    (6, 2, 5, [[1, 2], [3]], [6, 4], {}),
    (9, 3, 4, [[1, 1, 2], [2, 2], [1, 2, 1, 2]], [9, 5, 6], {}),
    (5, 2, 4, [[2, 1], [1, 1, 2]], [5, 2], {"ignore_longer_outputs_than_inputs": True}),
    (5, 1, 4, [[1, 1, 2]], [5], {"preprocess_collapse_repeated": True}),
    (5, 1, 4, [[1, 1, 2]], [5], {"ctc_merge_repeated": False}),
    (4, 1, 4, [[2, 2]], [2], {}),  # no path
]


def ctc(blank_first):
    """Roundings: a step adds 3 numbers' exponentials, takes their logarithm and adds a probability's, each no larger
    than the loss. That is 8 for each step, both ways, and the softmax's sum of the classes.
    """
    cases = []
    for time, batch, classes, labels, lengths, attrs in SEQUENCES:

        def make(t, r, time=time, batch=batch, classes=classes, labels=labels, lengths=lengths, attrs=attrs):
            return {
                "inputs": r.uniform((time, batch, classes), t.get("T", tf.float32), -2, 2),
                "labels_indices": tf.constant(
                    [[b, i] for b, row in enumerate(labels) for i in range(len(row))], tf.int64
                ),
                "labels_values": tf.constant([v for row in labels for v in row]),
                "sequence_length": tf.constant(lengths),
                **attrs,
            }

        n = 16 * time + 4 + classes
        if blank_first:
            cases.append(Case(make, n, ctc_sizes, expect=blank_last))
            continue
        # The CPU's doubles are added up as floats.
        cases.append(Case(make, n, ctc_sizes, types=(tf.float32,)))
        cases.append(Case(make, n, ctc_sizes, types=(tf.float64,), expect=ctc_in_double))
    return cases


def ctc_in_double(args):
    """The sum over all paths, step by step; the gradient by what each state has of it."""
    logits = args["inputs"].numpy()
    y = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss, gradient = np.zeros(logits.shape[1]), np.zeros(logits.shape)
    merge, blank = args.get("ctc_merge_repeated", True), logits.shape[2] - 1
    for b, length in enumerate(args["sequence_length"].numpy()):
        label = args["labels_values"].numpy()[args["labels_indices"].numpy()[:, 0] == b]
        if len(label) > length and args.get("ignore_longer_outputs_than_inputs"):
            continue
        if args.get("preprocess_collapse_repeated"):
            label = label[np.append(True, label[1:] != label[:-1])]
        states = np.full(2 * len(label) + 1, blank)
        states[1::2] = label
        n = len(states)
        steps = np.zeros((n, n))  # from, to
        for s in range(n):
            steps[s, s] = merge or states[s] == blank
            if s > 0:
                steps[s - 1, s] = 1
            if s > 1 and states[s] != blank and not (merge and states[s] == states[s - 2]):
                steps[s - 2, s] = 1
        p = np.exp(y[:length, b, states])
        forward, backward = np.zeros((length, n)), np.zeros((length, n))
        forward[0, :2], backward[-1, -2:] = p[0, :2], 1
        for t in range(1, length):
            forward[t] = forward[t - 1] @ steps * p[t]
            backward[-t - 1] = steps @ (backward[-t] * p[-t])
        total = (forward[0] * backward[0]).sum()
        with np.errstate(divide="ignore"):
            loss[b] = -np.log(total)
        gradient[:length, b] = np.exp(y[:length, b])
        if total > 0:
            np.add.at(gradient[:, b].T, states, -(np.pad(forward * backward, [(0, len(y) - length), (0, 0)]) / total).T)
    return [tf.constant(loss, args["inputs"].dtype), tf.constant(gradient, args["inputs"].dtype)]


def ctc_sizes(args, exact):
    loss = np.where(np.isfinite(exact[0]), np.abs(exact[0]), 0)
    return [1 + loss, np.broadcast_to((1 + loss)[None, :, None], exact[1].shape)]


def greedy():
    """Sequences of every length, none included, with blanks and repetitions; few classes, so that there are some."""

    def make(t, r, merge, blank, shape):
        lengths = [shape[0] - b * 3 for b in range(shape[1])]
        kwargs = {"merge_repeated": merge, "blank_index": blank}
        return {"inputs": r.uniform(shape, t["T"]), "sequence_length": tf.constant(lengths), **kwargs}

    return [
        Case(lambda t, r, m=m, b=b, s=s: make(t, r, m, b, s), terms(s[0]), ABSOLUTE)
        for m in (True, False)
        for b, s in ((-1, (9, 4, 3)), (0, (12, 3, 2)), (2, (7, 1, 4)))
    ]


def blank_last(args):
    """CTCLossV2, of which the CPU has no kernel: CTCLoss with the first class last, and labels one less."""
    args = {**args, "inputs": tf.roll(args["inputs"], -1, axis=2), "labels_values": args["labels_values"] - 1}
    loss, gradient = tf.raw_ops.CTCLoss(**args)
    return [loss, tf.roll(gradient, 1, axis=2)]


def summaries():
    special = np.array([[1, -2, 0, np.inf, -np.inf, np.nan, np.inf, -0.0]])
    values = [special, special[:, :3], np.zeros((0, 2)), np.arange(-3.0, 4.0).reshape(1, 7, 1, 1, 1, 1, 1)]

    def make(t, r, mode, value):
        value = value if t["T"].is_floating else np.nan_to_num(value, posinf=3, neginf=-3)
        kwargs = {"tensor_debug_mode": mode, "tensor_id": 7, "output_dtype": t["output_dtype"]}
        return {"input": tf.cast(value, t["T"]), **kwargs}

    return [
        Case(lambda t, r, m=m, v=v: make(t, r, m, v), compare="bits")
        for m in (2, 3, 4, 5, 8)
        for v in (values if m in (4, 8) else values[:2] + values[3:])
    ]


CASES = {
    "MaxPoolWithArgmax": with_argmax("MaxPoolWithArgmax"),
    "MaxPoolGradWithArgmax": with_argmax("MaxPoolGradWithArgmax"),
    "MaxPoolGradGradWithArgmax": with_argmax("MaxPoolGradGradWithArgmax"),
    "MaxPoolGradGrad": second_gradient(2),
    "MaxPoolGradGradV2": second_gradient(2, v2=True),
    "MaxPool3DGradGrad": second_gradient(3),
    "LRN": lrn(gradient=False),
    "LRNGrad": lrn(gradient=True),
    **{
        op: lstm(op)
        for name in ("LSTMBlockCell", "BlockLSTM")
        for op in (name, name + "Grad", *((name + "V2", name + "GradV2") if name == "BlockLSTM" else ()))
    },
    "GRUBlockCell": gru(gradient=False),
    "GRUBlockCellGrad": gru(gradient=True),
    "DebugNumericSummaryV2": summaries(),
    "CTCLoss": ctc(blank_first=False),
    "CTCLossV2": ctc(blank_first=True),
    "CTCGreedyDecoder": greedy(),
}
