"""Branches, loops, sequences and recurrent layers. A sequence is a Python list, so that loops over one are unrolled."""

from __future__ import annotations

import tensorflow as tf

from tests.onnx_nodes.interpreter import NotKnownError, is_constant, known, operator, type_of, whole


@operator("If")
def if_(node, condition):
    try:
        branch = "then_branch" if bool(known(tf.reshape(condition, []))) else "else_branch"
        return tuple(node.run(branch))
    except NotKnownError:
        kinds = {o.type.WhichOneof("value") for b in ("then_branch", "else_branch") for o in node[b].output}
        if kinds - {"tensor_type", None}:  # sequences and optional values are Python's
            raise
        condition = tf.reshape(condition, [])
        found = tf.cond(condition, lambda: node.run("then_branch"), lambda: node.run("else_branch"))
        return tuple(found) if isinstance(found, (list, tuple)) else (found,)


@operator("Loop")
def loop(node, trips, condition, *carried):
    """Runs a tf.while_loop, or an unrolled loop if it carries a sequence."""
    trips = tf.constant(2**62, tf.int64) if trips is None else tf.reshape(trips, [])
    condition = tf.constant(True) if condition is None else tf.reshape(condition, [])
    if any(not tf.is_tensor(c) for c in carried):
        return unrolled(node, int(known(trips)), condition, list(carried))
    scans = len(node["body"].output) - 1 - len(carried)
    types = scan_types(node, tf.constant(0, tf.int64), condition, *carried, behind=1 + len(carried))
    arrays = [tf.TensorArray(t, 0, dynamic_size=True, infer_shape=False) for t in types]

    def step(i, _, values, arrays):
        goes_on, *found = node.run("body", i, condition, *values)
        written = [a.write(tf.cast(i, tf.int32), v) for a, v in zip(arrays, found[len(values) :])]
        return i + 1, tf.reshape(goes_on, []), tuple(found[: len(values)]), tuple(written)

    shapes = tuple(tf.TensorShape(None) for _ in carried), tuple(tf.TensorShape(None) for _ in range(scans))
    _, _, carried, arrays = tf.while_loop(
        lambda i, goes_on, *_: tf.logical_and(i < trips, goes_on),
        step,
        (tf.constant(0, tf.int64), condition, tuple(carried), tuple(arrays)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), *shapes),
    )
    return (*carried, *(a.stack() for a in arrays))


def scan_types(node, *arguments, behind):
    """The types of the outputs that a body has besides the carried values; some graphs do not declare them."""
    said = [o.type.tensor_type.elem_type for o in node["body"].output[behind:]]
    if all(said):
        return [type_of(t) for t in said]
    with tf.Graph().as_default():  # a trial with zeros
        arguments = [tf.zeros(a.shape, a.dtype) for a in arguments]
        kept = {k: v for k, v in node.values.items() if tf.is_tensor(v)}
        seen = {k: v if is_constant(v) else tf.zeros(v.shape, v.dtype) for k, v in kept.items()}
        return [v.dtype for v in node.run("body", *arguments, seen=seen)[behind:]]


def unrolled(node, trips, condition, carried):
    scans = []
    for i in range(trips):
        if not bool(known(condition)):
            break
        condition, *found = node.run("body", tf.constant(i, tf.int64), condition, *carried)
        carried, scan = found[: len(carried)], found[len(carried) :]
        scans.append(scan)
    return (*carried, *(tf.stack(s) for s in zip(*scans)))


@operator("Scan")
def scan(node, *arguments):
    """Runs a tf.while_loop over the scanned axis. Version 8 scans the batches one after the other."""
    if node.opset < 9:
        return batches(node, *arguments[1:])
    return scanned(node, *arguments)


def batches(node, *arguments):
    rows = zip(*(tf.unstack(a) for a in arguments))
    return tuple(tf.stack(v) for v in zip(*(scanned(node, *row) for row in rows)))


def scanned(node, *arguments):
    number = node["num_scan_inputs"]
    carried, inputs = arguments[: len(arguments) - number], list(arguments[len(arguments) - number :])
    in_axes, reverse = node["scan_input_axes"] or [0] * number, node["scan_input_directions"] or [0] * number
    inputs = [tf.experimental.numpy.moveaxis(x, a, 0) for x, a in zip(inputs, in_axes)]
    inputs = [tf.reverse(x, [0]) if r else x for x, r in zip(inputs, reverse)]
    steps = tf.shape(inputs[0])[0]
    types = scan_types(node, *carried, *(x[0] for x in inputs), behind=len(carried))
    arrays = [tf.TensorArray(t, steps, infer_shape=False) for t in types]

    def step(i, values, arrays):
        found = node.run("body", *values, *(x[i] for x in inputs))
        written = [a.write(i, v) for a, v in zip(arrays, found[len(values) :])]
        return i + 1, tuple(found[: len(values)]), tuple(written)

    first = (tf.constant(0), tuple(carried), tuple(arrays))
    _, carried, arrays = tf.while_loop(lambda i, *_: i < steps, step, first)
    stacked = [a.stack() for a in arrays]
    backward = node["scan_output_directions"] or [0] * len(stacked)
    stacked = [tf.reverse(s, [0]) if b else s for s, b in zip(stacked, backward)]
    axes = node["scan_output_axes"] or [0] * len(stacked)
    return (*carried, *(tf.experimental.numpy.moveaxis(s, 0, a) if a else s for s, a in zip(stacked, axes)))


@operator("SequenceConstruct")
def sequence_construct(node, *values):
    return list(values)


@operator("SequenceEmpty")
def sequence_empty(node):
    return []


@operator("SequenceAt")
def sequence_at(node, sequence, position):
    return tf.identity(sequence[whole(position)[0]])


@operator("SequenceInsert")
def sequence_insert(node, sequence, value, position=None):
    at = len(sequence) if position is None else whole(position)[0]
    return [*sequence[:at], value, *sequence[at:]]


@operator("SequenceErase")
def sequence_erase(node, sequence, position=None):
    at = len(sequence) - 1 if position is None else whole(position)[0] % len(sequence)
    return [v for i, v in enumerate(sequence) if i != at]


@operator("SequenceLength")
def sequence_length(node, sequence):
    return tf.constant(len(sequence), tf.int64)


@operator("SequenceMap")
def sequence_map(node, sequence, *rest):
    of_each = (
        node.run("body", value, *(r[i] if isinstance(r, list) else r for r in rest)) for i, value in enumerate(sequence)
    )
    return tuple(map(list, zip(*of_each)))


@operator("ConcatFromSequence")
def concat_from_sequence(node, sequence):
    return (tf.stack if node["new_axis"] else tf.concat)(sequence, node["axis"])


@operator("SplitToSequence")
def split_to_sequence(node, x, sizes=None):
    """Parts have length 1 if there are no sizes. Equal parts may have a smaller last one."""
    axis, length = node["axis"], x.shape[node["axis"]]
    if sizes is None:
        parts = tf.split(x, length, axis)
        return parts if node["keepdims"] else [tf.squeeze(p, axis) for p in parts]
    sizes = whole(sizes) if sizes.shape.rank else [int(known(sizes))] * (length // int(known(sizes)))
    rest = length - sum(sizes)
    return tf.split(x, sizes + [rest] * (rest > 0), axis)


@operator("Optional")
def optional(node, value=None):
    return value


@operator("OptionalHasElement")
def optional_has_element(node, value=None):
    return tf.constant(value is not None)


@operator("OptionalGetElement")
def optional_get_element(node, value):
    return tf.identity(value) if tf.is_tensor(value) else value


# Recurrent layers. A step of one direction maps (inputs, state...) to the state, whose first tensor is the output.
def rnn_step(node, w, r, b, _):
    return lambda x, h: (tf.tanh(tf.matmul(x, w, transpose_b=True) + tf.matmul(h, r, transpose_b=True) + b[0] + b[1]),)


def gru_step(node, w, r, b, _):
    """Gates are update, reset, new."""

    def step(x, h):
        of_x = tf.split(tf.matmul(x, w, transpose_b=True) + b[0], 3, -1)
        of_h = tf.split(tf.matmul(h, r, transpose_b=True) + b[1], 3, -1)
        update, reset = tf.sigmoid(of_x[0] + of_h[0]), tf.sigmoid(of_x[1] + of_h[1])
        if node["linear_before_reset"]:
            new = tf.tanh(of_x[2] + reset * of_h[2])
        else:
            last, of_new = tf.split(r, 3)[2], tf.split(b[1], 3, -1)[2]
            new = tf.tanh(of_x[2] + tf.matmul(reset * h, last, transpose_b=True) + of_new)
        return ((1 - update) * new + update * h,)

    return step


def lstm_step(node, w, r, b, peepholes):
    """Gates are input, output, forget, cell."""

    def step(x, h, c):
        gates = tf.matmul(x, w, transpose_b=True) + tf.matmul(h, r, transpose_b=True) + b[0] + b[1]
        i, o, f, g = tf.split(gates, 4, -1)
        of_i, of_o, of_f = (0.0, 0.0, 0.0) if peepholes is None else tf.split(peepholes, 3)
        c_next = tf.sigmoid(f + of_f * c) * c + tf.sigmoid(i + of_i * c) * tf.tanh(g)
        return tf.sigmoid(o + of_o * c_next) * tf.tanh(c_next), c_next

    return step


def recurrent(make, gates, states):
    """Makes an operator. Its inputs are time-major, or batch-major if its layout says so."""

    def of_node(node, x, w, r, b=None, lengths=None, h=None, c=None, peepholes=None):
        assert node["activations"] is None or node.name == "RNN", "other activations"
        x = tf.transpose(x, [1, 0, 2]) if node["layout"] else x
        directions, hidden = w.shape[0], node["hidden_size"]
        reverse = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[node["direction"]]
        sides = []
        for d in range(directions):
            bias = tf.zeros([2, gates * hidden], x.dtype) if b is None else tf.reshape(b[d], [2, -1])
            initial = [tf.zeros([x.shape[1], hidden], x.dtype) if s is None else s[d] for s in (h, c)[:states]]
            step = make(node, w[d], r[d], bias, None if peepholes is None else peepholes[d])
            sides.append(one_direction(step, x, initial, reverse[d]))
        y = tf.stack([outputs for outputs, _ in sides], 1)
        last = [tf.stack(s) for s in zip(*(final for _, final in sides))]
        if node["layout"]:
            return tf.transpose(y, [2, 0, 1, 3]), *(tf.transpose(s, [1, 0, 2]) for s in last)
        return y, *last

    return of_node


def one_direction(step, x, initial, reverse):
    """Loops with a TensorArray; returns the outputs of all steps in the order of time, and the last state."""
    steps = x.shape[0]
    outputs = tf.TensorArray(x.dtype, steps)

    def body(i, state, outputs):
        at = steps - 1 - i if reverse else i
        state = step(x[at], *state)
        return i + 1, tuple(state), outputs.write(at, state[0])

    _, state, outputs = tf.while_loop(lambda i, *_: i < steps, body, (tf.constant(0), tuple(initial), outputs))
    return outputs.stack(), state


operator("RNN")(recurrent(rnn_step, 1, 1))
operator("GRU")(recurrent(gru_step, 3, 1))
operator("LSTM")(recurrent(lstm_step, 4, 2))
