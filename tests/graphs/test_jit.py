"""`tf.function(jit_compile=True)`: an ordinary function on an XPU, whichever way it is called, and XLA's on the CPU."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.support.processes import in_threads, run_code

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def jit(function=None, **options):
    return tf.function(function, jit_compile=True, **options)


# Each makes what it needs on the device in scope, and gives tensors. `jit` compiles wherever there is a compiler.
def eagerly(x):
    return jit(lambda v: tf.nn.gelu(v) * 2)(x)


def in_a_plain_function(x):
    inner = jit(lambda v: tf.exp(v) - 1)
    return tf.function(lambda v: inner(v) + inner(2 * v))(x)


def around_a_plain_function(x):
    inner = tf.function(lambda v: tf.tanh(v) + 1)
    return jit(lambda v: inner(v) * inner(-v))(x)


def in_each_other(x):
    inner = jit(lambda v: tf.sqrt(tf.abs(v)))
    middle = tf.function(lambda v: inner(v) + 1)
    return jit(lambda v: middle(v) * inner(v + 1))(x)


def around_control_flow(x):
    @jit
    def f(v):
        total = tf.zeros_like(v)
        for i in tf.range(5):
            if tf.reduce_sum(total) < 20.0:
                total += v * tf.cast(i, tf.float32)
            else:
                total -= 1.0
        return total

    return f(tf.abs(x))


def around_functional_loops(x):
    @jit(autograph=False)
    def f(v):
        _, total = tf.while_loop(lambda i, _: i < 4, lambda i, t: (i + 1, t + v), (tf.constant(0), tf.zeros_like(v)))
        return tf.cond(tf.reduce_any(total > 1), lambda: total, lambda: -total)

    return f(x)


def in_a_loop_and_a_branch(x):
    step = jit(lambda i, t: (i + 1, t * 0.5 + tf.cast(i, tf.float32)))
    branch = jit(lambda t: t - tf.reduce_max(t))

    @tf.function(autograph=False)
    def f(v):
        _, t = tf.while_loop(lambda i, _: i < 4, step, (tf.constant(0), v))
        return tf.cond(tf.reduce_sum(t) > 0, lambda: branch(t), lambda: t)

    return f(x), tf.while_loop(lambda i, _: i < 3, step, (tf.constant(0), x))


def over_a_tensor_array(x):
    @jit
    def f(v):
        rows = tf.TensorArray(tf.float32, 3, element_shape=[4])
        for i in tf.range(3):
            rows = rows.write(i, v[i] * v[2 - i])
        return rows.stack()

    return f(x)


def mapped(x):
    row = jit(lambda v: tf.nn.softmax(v))
    return tf.map_fn(row, x), tf.vectorized_map(row, x), jit(lambda v: tf.scan(lambda a, b: a + b, v))(x)


def with_gradients(x):
    loss = jit(lambda v: tf.reduce_sum(tf.nn.softplus(v @ tf.transpose(v))))

    @jit
    def gradient_inside(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = loss(v)
        return tape.gradient(y, v)

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = loss(x)
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x), gradient_inside(x), tf.function(gradient_inside)(x)


def with_a_gradient_of_its_own(x):
    @tf.custom_gradient
    def f(v):
        return v * v, lambda d: d * 100.0

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jit(f)(x)
    return y, tape.gradient(y, x)


def with_variables(x):
    weight, count = tf.Variable(tf.ones_like(x)), tf.Variable(np.int64(3))

    @jit
    def step(v):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((weight * v - 1) ** 2)
        weight.assign_sub(0.5 * tape.gradient(loss, weight))
        count.assign_add(1)
        return loss

    losses = [step(x), tf.function(step)(x), step(x)]
    nothing = jit(lambda: [weight.assign_add(tf.ones_like(weight)), None][1])
    nothing()
    return losses, weight.read_value(), count.read_value(), jit(lambda v: v * 2)(weight)


def with_a_variable_for_an_argument(x):
    return jit(lambda v, w: w.assign_add(v) + 1)(x, tf.Variable(x))


def with_a_variable_made_inside(x):
    made = []

    @jit
    def f(v):
        if not made:
            made.append(tf.Variable(tf.ones([3, 4])))
        return made[0].assign_add(v)

    return f(x), f(x)


def traced_again(x):
    f = jit(lambda v, axis=0, scale=1: tf.reduce_sum(v * scale, axis))
    loose = jit(lambda v: tf.concat([v, v[:1]], 0) + tf.cast(tf.shape(v)[0], v.dtype), reduce_retracing=True)
    values = [f(x), f(x, axis=1), f(x[:2]), f(tf.cast(x, tf.float64), 0, scale=3), f(tf.cast(x, tf.float16))]
    return values + [loose(tf.concat([x] * n, 0)) for n in (1, 2, 3, 4)]


def with_a_signature(x):
    f = jit(lambda v: tf.reduce_mean(v, 0), input_signature=[tf.TensorSpec([None, 4])])
    concrete = jit(lambda v, n: v / n).get_concrete_function(tf.TensorSpec([None, None]), tf.TensorSpec([]))
    return f(x), f(x[:1]), concrete(x, tf.constant(3.0))


def with_integers(x):
    """Integers of 32 bits are in host memory on an accelerator: arguments, results and what is between."""
    f = jit(lambda v, n, i: (tf.roll(v, n, 1), n + 1, tf.argmax(v, 1, tf.int32) + n, i * 2, tf.shape(v)))
    arguments = x, tf.constant(3), tf.constant([2**40, -5], tf.int64)
    return f(*arguments), tf.function(f)(*arguments), jit(lambda n: tf.range(n) * 2)(tf.constant(6))


def with_structures(x):
    f = jit(lambda d, *, scale: {"a": [d["x"] * scale, (d["y"][0], None)], "b": scale})
    return f({"x": x, "y": (x + 1, 2)}, scale=2.5)


def of_a_class(x):
    class Layer(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.ones([4, 2]))

        @jit
        def __call__(self, v):
            return v @ self.w

    layer = Layer()
    return layer(x), tf.function(layer.__call__)(x)


WAYS = [
    eagerly,
    in_a_plain_function,
    around_a_plain_function,
    in_each_other,
    around_control_flow,
    around_functional_loops,
    in_a_loop_and_a_branch,
    over_a_tensor_array,
    mapped,
    with_gradients,
    with_a_gradient_of_its_own,
    with_variables,
    with_a_variable_for_an_argument,
    with_a_variable_made_inside,
    traced_again,
    with_a_signature,
    with_integers,
    with_structures,
    of_a_class,
]


def run_on(device, way, *arguments):
    with tf.device(device):
        return [t for t in tf.nest.flatten(way(tf.constant(X), *arguments)) if t is not None]


def equal(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        tolerance = 2e-2 if a.dtype == tf.float16 else 2e-5
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ways_of_calling(xpu_device, way):
    """The same results as XLA's on the CPU, and on the device."""
    got, want = run_on(xpu_device, way), run_on("/cpu:0", way)
    assert [t.device[-5:] for t in got if t.dtype.is_floating] == ["XPU:0"] * sum(t.dtype.is_floating for t in got)
    assert {t.device[-5:] for t in want} == {"CPU:0"}
    equal(got, want)


def test_random_numbers_are_those_of_an_ordinary_function(xpu_device):
    def numbers(v):
        return v + tf.random.stateless_uniform([3, 4], [1, 2]), tf.nn.dropout(v, 0.5, seed=3)

    def seeded(v, function):
        tf.random.set_seed(7)
        return function(v)

    got = run_on(xpu_device, seeded, jit(numbers))
    equal(got, run_on(xpu_device, seeded, tf.function(numbers)))


def not_for_xla(x):
    """XLA has no strings."""
    return tf.strings.length(tf.strings.as_string(x))


def nested(x):
    return tf.function(lambda v: jit(not_for_xla)(v) + 1)(x)


@pytest.mark.of_hooks("jit")  # without which XLA compiles nothing
@pytest.mark.parametrize("way", [jit(not_for_xla), nested], ids=["eagerly", "nested"])
def test_the_cpu_still_compiles(xpu_device, way):
    """A function that XLA cannot compile runs on an XPU, and on the CPU XLA says that it cannot."""
    assert run_on(xpu_device, way)[0].shape == (3, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="compil"):
        run_on("/cpu:0", way)


def test_the_cpu_shows_what_it_compiles(xpu_device):
    f = jit(lambda v: tf.nn.relu(v) + 1)
    run_on(xpu_device, f)
    with tf.device("/cpu:0"):
        assert "HloModule" in f.experimental_get_compiler_ir(tf.constant(X))(stage="hlo", platform_name="CPU")


def test_parts_run_where_they_are_said_to(xpu_device):
    """With soft placement and with devices in the function, as an ordinary function has them."""

    @jit
    def f(v):
        with tf.device("/cpu:0"):
            host = tf.strings.to_number(tf.strings.as_string(v))
        return host + v, tf.strings.join([tf.strings.as_string(v[0, 0]), "!"])

    number, text = run_on(xpu_device, f)
    np.testing.assert_allclose(number.numpy(), 2 * X, rtol=1e-5)
    assert text.numpy() == b"-2.000000!"
    with tf.device(xpu_device):
        assert jit(lambda s: tf.strings.length(s))(tf.constant("abc")).numpy() == 3


def test_parts_of_control_flow_run_where_they_can(xpu_device):
    """Also the bodies of loops and branches, whatever function they are in: strings are for the CPU."""
    plain = tf.function(
        lambda v: tf.cond(tf.reduce_sum(v) > 0, lambda: tf.strings.as_string(v), lambda: tf.constant("-"))
    )

    @jit
    def f(v):
        text, n = tf.constant(""), tf.constant(0)
        while n < 3:
            if n > 0:
                text = tf.strings.join([text, plain(v[n % 3, 3]), tf.strings.as_string(n)])
            n += 1
        return text, v * tf.cast(tf.strings.length(text), tf.float32)

    for call in f, tf.function(lambda v: f(v)):
        text, product = run_on(xpu_device, call)
        assert text.numpy() == tf.function(f.python_function)(tf.constant(X))[0].numpy()
        np.testing.assert_allclose(product.numpy(), X * len(text.numpy()), rtol=1e-6)


def test_errors_are_those_of_the_op(xpu_device):
    f = jit(lambda v, i: tf.gather(v, i))
    with tf.device(xpu_device):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            f(tf.constant(X), tf.constant([7])).numpy()
        with pytest.raises(tf.errors.InvalidArgumentError, match="not here"):
            jit(lambda v: [v, tf.debugging.assert_less(v, 0.0, "not here")][0])(tf.constant(X))


def test_several_threads(xpu_device):
    """Each with shapes and integers of its own, which are in host memory: none gets another's."""
    f = jit(lambda v, shape, n: (tf.fill(shape, tf.reduce_sum(v)), n + 1, tf.strings.length(tf.strings.as_string(n))))
    nesting = tf.function(lambda v, shape, n: f(v, shape, n))
    wrong = []

    def work(thread):
        try:
            with tf.device(xpu_device):
                for i in range(150):
                    shape = [thread + 2, i % 5 + 1]
                    n = 10**thread
                    filled, next_n, digits = (f, nesting)[i % 2](
                        tf.ones([thread + 1]), tf.constant(shape), tf.constant(n)
                    )
                    if filled.shape != shape or filled[0, 0].numpy() != thread + 1:
                        wrong.append((shape, filled))
                    if next_n.numpy() != n + 1 or digits.numpy() != thread + 1:
                        wrong.append((n, next_n, digits))
        except Exception as error:
            wrong.append(error)

    in_threads(work)
    assert wrong == []


class Saved(tf.Module):
    """A model whose method is to be compiled, and calls another such function."""

    def __init__(self):
        self.w = tf.Variable(tf.ones([4, 2]))
        self.inner = jit(lambda v: tf.nn.relu(v) + 1)

    @jit(input_signature=[tf.TensorSpec([None, 4])])
    def __call__(self, v):
        return {"y": self.inner(v) @ self.w}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("saved") / "model")
    with tf.device("/cpu:0"):
        model = Saved()
        tf.saved_model.save(model, path, signatures=model.__call__)
        return path, model(tf.constant(X))["y"].numpy()


@pytest.mark.parametrize("device", ["/xpu:0", "/cpu:0"])
def test_from_a_saved_model(xpu_device, saved, device):
    path, want = saved
    with tf.device(device):
        model = tf.saved_model.load(path)
        x = tf.constant(X)
        for y in model(x)["y"], model.signatures["serving_default"](x)["y"], tf.function(model)(x)["y"]:
            np.testing.assert_allclose(y.numpy(), want, rtol=1e-5)
            assert y.device.endswith(device.upper().lstrip("/")), y.device


@pytest.mark.parametrize("device", ["/xpu:0", "/cpu:0"])
def test_in_a_session(xpu_device, saved, device):
    path, want = saved
    v1 = tf.compat.v1
    with tf.Graph().as_default(), tf.device(device):
        x = v1.placeholder(tf.float32, [None, 4])
        w = v1.get_variable("w", initializer=tf.ones([4, 2]), use_resource=True)
        y = jit(lambda v: tf.nn.relu(v) @ w + 1)(x)
        gradient = tf.gradients(y, w)[0]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            got = session.run([y, gradient], {x: X})
    relu = np.maximum(X, 0)
    np.testing.assert_allclose(got[0], relu @ np.ones([4, 2]) + 1, rtol=1e-5)
    np.testing.assert_allclose(got[1], relu.sum(0)[:, None] * np.ones([4, 2]), rtol=1e-5)

    with tf.Graph().as_default(), tf.device(device), v1.Session() as session:
        model = v1.saved_model.load(session, ["serve"], path)
        signature = model.signature_def["serving_default"]
        got = session.run(signature.outputs["y"].name, {signature.inputs["v"].name: X})
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_is_said_once(xpu_device):
    outcome = run_code(
        """
        import tensorflow as tf
        with tf.device("/cpu:0"):
            tf.function(lambda x: x + 1, jit_compile=True)(1.0)
        import sys; print("until here", file=sys.stderr, flush=True)
        for i in range(3):
            f = tf.function(lambda x: x * i, jit_compile=True)
            tf.function(lambda x: f(x) + 1)(tf.constant(2.0))
            print(f(tf.constant(2.0)).device)
        """
    )
    assert outcome.returncode == 0 and outcome.stdout.count("XPU:0") == 3, outcome
    assert len(outcome.warnings) == 1 and "jit_compile=True" in outcome.warnings[0], outcome
    assert outcome.stderr.index("until here") < outcome.stderr.index("tensorflow_xpu: "), outcome


@pytest.mark.of_hooks("clusters")
def test_a_layer_that_keras_compiles_does_not_divide_its_model(xpu_device):
    """Keras has XLA compile each convolution in groups by itself."""
    layers = keras.layers
    stack = [layers.Conv2D(8, 3, groups=4, padding="same"), layers.ReLU(), layers.Conv2D(4, 3, groups=2)]
    model = keras.Sequential([keras.Input((6, 6, 8)), *stack])
    f = tf.function(lambda v: model(v))
    x = np.random.default_rng(2).normal(size=(2, 6, 6, 8)).astype(np.float32)
    with placement.record_nodes() as nodes:
        got = f(tf.constant(x))
    assert collections.Counter(node.op for node in nodes)["_XpuCluster"] == 1
    assert not [node.name for node in nodes if "PartitionedCall" in node.op]
    with tf.device("/cpu:0"):
        on_cpu = keras.models.clone_model(model)
        on_cpu.set_weights(model.get_weights())
        np.testing.assert_allclose(got, on_cpu(x), rtol=1e-4, atol=1e-5)


def test_on_the_second_device(xpu_device):
    outcome = run_code(
        """
        import tensorflow as tf
        with tf.device("/xpu:1"):
            w = tf.Variable(tf.ones([3]))
            f = tf.function(lambda x: w.assign_add(x) * 2, jit_compile=True)
            print(f(tf.ones([3])).device, f(tf.ones([3])).numpy().tolist())
        print(tf.function(f)(tf.ones([3])).numpy().tolist(), f(tf.ones([3])).numpy().tolist())
        strategy = tf.distribute.MirroredStrategy(["/xpu:0", "/xpu:1"])
        with strategy.scope():
            v = tf.Variable(1.0)
            step = tf.function(lambda x: x * v, jit_compile=True)
        results = strategy.run(step, (tf.constant(3.0),)).values
        print([float(r) for r in results])
        """,
        environment={"TF_XPU_DEVICE_COUNT": "2"},
    )
    assert outcome.returncode == 0, outcome
    assert outcome.stdout.splitlines() == [
        "/job:localhost/replica:0/task:0/device:XPU:1 [6.0, 6.0, 6.0]",
        "[8.0, 8.0, 8.0] [10.0, 10.0, 10.0]",
        "[3.0, 3.0]",
    ], outcome


KERAS = """
import json
import keras
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).standard_normal((32, 8, 8, 4)).astype("float32")
y = x.mean((1, 2)) @ np.ones((4, 1), "float32")
losses = {}
for device in "/cpu:0", "/xpu:0":
    keras.utils.set_random_seed(1)
    with tf.device(device):
        model = keras.Sequential([keras.Input((8, 8, 4)), keras.layers.Conv2D(8, 3, groups=2, activation="relu"),
                                  keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse", OPTIONS)
        losses[device] = model.fit(x, y, epochs=3, batch_size=16, shuffle=False, verbose=0).history["loss"]
        prediction = model.predict(x, verbose=0)
        losses[device].append(float(np.square(prediction - y).mean()))
        kernel = model.layers[0].kernel.value.device
print(json.dumps({**losses, "kernel": kernel}))
"""


@pytest.mark.parametrize(
    "options", ["jit_compile='auto'", "jit_compile=True", "jit_compile=True, steps_per_execution=2"]
)
def test_keras(xpu_device, options):
    """Keras has XLA compile grouped convolutions always, and all of a step where it is asked to."""
    outcome = run_code(KERAS.replace("OPTIONS", options))
    assert outcome.returncode == 0, outcome
    seen = outcome.json
    assert seen["kernel"].endswith("XPU:0")
    assert seen["/xpu:0"] == pytest.approx(seen["/cpu:0"], rel=1e-3)
    assert seen["/xpu:0"][-1] < seen["/xpu:0"][0]
