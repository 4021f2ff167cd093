"""Tests of `trace_placement`, its reports, and the callback for Keras: which ops ran where."""

import collections
import re
import sys
import textwrap
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context, execute

import tensorflow_xpu
from tensorflow_xpu import XPUError, _trace
from tensorflow_xpu._placement import PlacementReport, Row
from tests.support import placement
from tests.support.processes import run, run_code
from tests.sweep.registrations import all_registrations

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def found(report, bookkeeping=False):
    """{(op, where without its number, kind): count}."""
    counts = collections.Counter()
    for row in report.rows(bookkeeping):
        counts[row.op, row.where.partition(":")[0], row.kind] += report.counts[row]
    return dict(counts)


def sparse_matrix():
    return tf.sparse.SparseTensor([[0, 1]], [1.0], [2, 2])


def mixed(x, text):
    """Ops with every reason there is, and what is known of each."""
    with tf.device("/cpu:0"):
        pinned = tf.atan(x)
    whole = tf.cast(tf.strings.length(text), tf.float64)
    both = tf.sparse.add(sparse_matrix(), sparse_matrix())
    return tf.sinh(x), pinned, whole, tf.linalg.sqrtm(x), both.values, tf.size(text) + 1


MIXED = {
    ("Sinh", "XPU", ""): 1,
    ("Cast", "XPU", ""): 1,
    ("Atan", "CPU", "pinned"): 1,
    ("StringLength", "CPU", "string"): 1,
    ("MatrixSquareRoot", "CPU", "no kernel"): 1,
    ("SparseAdd", "CPU", "no kernel"): 1,
}
ARGUMENTS = (tf.constant([[2.0, 0.0], [0.0, 2.0]], tf.float64), tf.constant(["one", "two"]))


def test_eager_ops_each_with_its_reason(xpu_device):
    with tensorflow_xpu.trace_placement() as report:
        results = mixed(*ARGUMENTS)
    expected = {**MIXED, ("AddV2", "host", "host memory"): 1}
    assert {key: n for key, n in found(report).items() if key[0] != "Fill"} == expected
    # TensorFlow's word on the devices of the results.
    assert [value.device[-5:] for value in results[:4]] == ["XPU:0", "CPU:0", "XPU:0", "CPU:0"]
    assert (results[5].device[-5:], results[5].backing_device[-5:]) == ("XPU:0", "CPU:0")
    assert report.on_xpu("Sinh") == 1
    assert report.elsewhere("Sinh") == 0
    assert report.elsewhere("SparseAdd") == 1
    (row,) = [row for row in report.rows() if row.op == "MatrixSquareRoot"]
    assert (row.types, row.reason) == ("float64", "no kernel for XPU")


@pytest.mark.parametrize("called_before", [False, True])
def test_functions_each_op_with_its_reason(called_before, xpu_device):
    function = tf.function(mixed)
    arguments = ARGUMENTS
    if called_before:
        function(*arguments)
    with tensorflow_xpu.trace_placement() as report:
        function(*arguments)
        function(*arguments)
    assert report.functions == 2
    assert function.experimental_get_tracing_count() == 1
    ran = found(report)
    # The size of an argument whose shape is known is a constant, and its sum with 1, too.
    assert ran == {key: 2 for key in MIXED}, report
    assert report.rows() == sorted(report.rows(), key=lambda row: row.on_xpu)  # the XPU's last


def test_a_type_without_a_kernel_names_those_that_have_one(xpu_device):
    image = tf.reshape(tf.range(16, dtype=tf.int64), [1, 4, 4, 1])
    with tensorflow_xpu.trace_placement() as report:
        value = tf.raw_ops.MaxPool(input=image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    assert value.device.endswith("CPU:0")
    (row,) = report.rows()
    served = sorted({t.name for r in all_registrations() if r.op == "MaxPool" for a, t in r.types if a == "T"})
    assert (row.kind, row.reason) == ("no type", f"no kernel for T=int64, only for {', '.join(served)}")
    explanation = tensorflow_xpu.explain("MaxPool", tf.int64)
    assert (explanation.where, explanation.reason) == ("CPU", row.reason)


def test_resources_on_the_cpu(xpu_device):
    with tf.device("/cpu:0"):
        there = tf.Variable(tf.ones([3]))
    here = tf.Variable(tf.ones([3]))
    number = tf.Variable(1)
    assert number.device.endswith("CPU:0")  # as TensorFlow has it for 32-bit integers

    @tf.function
    def update():
        there.assign_add(tf.ones([3]))
        here.assign_add(tf.ones([3]))

    with tensorflow_xpu.trace_placement() as report:
        there.assign_sub(tf.ones([3]))
        here.assign_sub(tf.ones([3]))
        number.assign_add(1)
        update()
    assert {key: n for key, n in found(report).items() if key[0] != "Fill"} == {
        ("AssignSubVariableOp", "CPU", "resource"): 1,
        ("AssignSubVariableOp", "XPU", ""): 1,
        ("AssignAddVariableOp", "CPU", "resource"): 1,
        ("AssignAddVariableOp", "XPU", ""): 1,
        ("AssignAddVariableOp", "CPU", "host memory"): 1,
    }, report


def test_an_eager_loop(xpu_device):
    weight = tf.Variable(tf.ones([4, 4]))
    x = tf.ones([2, 4])
    with tensorflow_xpu.trace_placement() as report:
        for _ in range(5):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.tanh(x @ weight))
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
    ran = found(report)
    for op in ("MatMul", "Tanh", "Sum", "TanhGrad", "AssignSubVariableOp"):
        # In the gradient of x @ weight, weight's part alone is computed.
        assert ran.pop((op, "XPU", "")) == (10 if op == "MatMul" else 5), report
    assert {where for _, where, kind in ran if kind != "host memory"} <= {"XPU"}, report
    assert report.functions == 0
    report.assert_all_on_xpu()


LOOP = """
    import json
    import tensorflow as tf
    import tensorflow_xpu

    @tf.function
    def train(x, text, limit):
        steps = tf.constant(0.0)
        while tf.reduce_sum(x) < limit:
            x = tf.sinh(x) + tf.cast(tf.strings.length(text), tf.float32)
            with tf.device("/cpu:0"):
                x = x + tf.atan(x)
            if steps > 2.0:
                x = tf.asinh(x)
            steps += 1.0
        return tf.cosh(x), steps

    arguments = tf.ones([3]), tf.constant("ab"), tf.constant(1e9)
    train(*arguments)
    with tensorflow_xpu.trace_placement() as report:
        train(*arguments)
        train(*arguments)
    print(json.dumps(report.to_records()))
"""


@pytest.mark.parametrize("fusion", ["1", "0"])
def test_a_function_with_a_loop_in_clusters_and_op_by_op(fusion, tmp_path):
    (tmp_path / "the_loop.py").write_text(textwrap.dedent(LOOP))  # autograph wants the source
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import the_loop"
    outcome = run_code(code, environment={"TF_XPU_FUSION": fusion})
    rows = {(r["op"], r["where"]): r for r in outcome.json}
    known = {
        # op: (where, kind, in a loop, in a branch)
        "Sinh": ("XPU:0", "", True, False),
        "StringLength": ("CPU:0", "string", True, False),
        "Atan": ("CPU:0", "pinned", True, False),
        "Asinh": ("XPU:0", "", True, True),
        "Cosh": ("XPU:0", "", False, False),
        "Less": ("XPU:0", "", True, False),
        "Greater": ("XPU:0", "", True, False),
    }
    for op, (where, kind, in_loop, in_branch) in known.items():
        assert (op, where) in rows, outcome
        row = rows[op, where]
        assert [row["kind"], row["in_loop"], row["in_branch"]] == [kind, in_loop, in_branch], row
        assert row["on_xpu"] + row["elsewhere"] == 2, row
    assert {op for op, _ in rows} - set(known) <= {"AddV2", "Cast", "Sum", "LogicalAnd"}, outcome


def network():
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(4)])
    model.compile(keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError())
    return model


DATA = (np.ones([12, 8], np.float32), np.ones([12, 4], np.float32))
# The ops of two dense layers: forward, and backward without the gradient of the input.
STEP = {"Relu": 1, "ReluGrad": 1, "MatMul": 5, "BiasAddGrad": 2, "AssignSubVariableOp": 4}


@pytest.mark.parametrize("trained_before", [False, True])
def test_a_fit(trained_before, xpu_device):
    model = network()
    if trained_before:
        model.fit(*DATA, batch_size=4, verbose=0)
    with tensorflow_xpu.trace_placement() as report:
        model.fit(*DATA, batch_size=4, epochs=2, verbose=0)
    for op, count in STEP.items():
        assert (report.on_xpu(op), report.elsewhere(op)) == (6 * count, 0), f"{op}\n{report}"
    report.assert_all_on_xpu()


def test_the_callback_reports_the_first_batch_once(xpu_device):
    texts = []
    callback = tensorflow_xpu.placement_callback(output=texts.append)
    model = network()
    model.fit(*DATA, batch_size=4, epochs=2, verbose=0, callbacks=[callback])
    assert len(texts) == 1
    assert {op: callback.report.on_xpu(op) for op in STEP} == STEP
    assert texts[0] == str(callback.report)
    model.fit(*DATA, batch_size=4, verbose=0, callbacks=[callback])
    assert len(texts) == 2


def test_a_batch_that_fails_does_not_keep_the_next_trace_from_beginning(xpu_device):
    class Fails(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            raise ZeroDivisionError

    callback = tensorflow_xpu.placement_callback(output=lambda text: None)
    with pytest.raises(ZeroDivisionError):
        network().fit(*DATA, verbose=0, callbacks=[callback, Fails()])
    with tensorflow_xpu.trace_placement() as report:
        tf.tanh(tf.ones([3]))
    assert report.on_xpu("Tanh") == 1
    assert callback.report.complete
    nothing_is_left()


def nothing_is_left():
    assert context.context().op_callbacks == []
    assert execute.execute is execute.quick_execute
    assert _trace._active is None
    assert list(context.context().export_run_metadata().function_graphs) == []


def test_it_ends_with_the_block(xpu_device):
    with tensorflow_xpu.trace_placement() as report:
        tf.tanh(tf.ones([3]))
    nothing_is_left()
    tf.function(tf.tanh)(tf.ones([3]))
    tf.tanh(tf.ones([3]))
    assert report.on_xpu("Tanh") == 1
    nothing_is_left()


def test_an_exception_leaves_a_report_of_what_ran_before(xpu_device):
    with pytest.raises(ZeroDivisionError), tensorflow_xpu.trace_placement() as report:
        tf.tanh(tf.ones([3]))
        raise ZeroDivisionError
    assert report.on_xpu("Tanh") == 1
    nothing_is_left()


def on_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_threads_that_begin_inside(xpu_device):
    function = tf.function(lambda x: tf.tanh(x) + tf.cosh(x))
    function(tf.ones([3]))
    with tensorflow_xpu.trace_placement() as report:
        for _ in range(3):
            on_a_thread(lambda: function(tf.sinh(tf.ones([3]))))
    assert [report.on_xpu(op) for op in ("Tanh", "Cosh", "Sinh")] == [3, 3, 3]
    on_a_thread(lambda: tf.sinh(tf.ones([3])))
    assert report.on_xpu("Sinh") == 3
    assert threading.getprofile() is None
    nothing_is_left()


def test_a_thread_that_began_before(xpu_device):
    """Its eager ops are not seen, its functions are."""
    function = tf.function(lambda x: tf.tanh(x) + tf.cosh(x))
    begin, end = threading.Event(), threading.Event()

    def work():
        begin.wait()
        function(tf.sinh(tf.ones([3])))
        end.set()

    thread = threading.Thread(target=work)
    thread.start()
    with tensorflow_xpu.trace_placement() as report:
        begin.set()
        end.wait()
    thread.join()
    assert [report.on_xpu(op) for op in ("Tanh", "Cosh", "Sinh")] == [1, 1, 0]


def test_a_thread_that_goes_on_is_left_alone_when_the_block_has_ended(xpu_device):
    begin, left = threading.Event(), []

    def work():
        begin.wait()
        tf.tanh(tf.ones([3]))
        left.append(list(context.context().op_callbacks))

    with tensorflow_xpu.trace_placement() as report:
        thread = threading.Thread(target=work)
        thread.start()
        tf.sinh(tf.ones([3]))
    begin.set()
    thread.join()
    assert (report.on_xpu("Sinh"), report.on_xpu("Tanh"), left) == (1, 0, [[]])
    nothing_is_left()


def test_what_tf_data_does_is_named_as_not_counted(xpu_device):
    data = tf.data.Dataset.range(3).map(lambda i: tf.cast(i, tf.float32) * 2)
    with tensorflow_xpu.trace_placement() as report:
        for element in data:
            tf.tanh(element)
    assert report.on_xpu("Tanh") == 3
    assert report.elsewhere("Mul") == report.on_xpu("Mul") == 0
    assert "what functions of tf.data do, for each element, on the CPU, is not counted" in str(report)


SEVERAL = """
    import json
    import tensorflow as tf
    import tensorflow_xpu

    function = tf.function(lambda x, y: (tf.tanh(x), tf.cosh(y)))
    with tf.device("/TYPE:0"):
        x = tf.ones([3])
    with tf.device("/TYPE:1"):
        y = tf.ones([3])

    @tf.function
    def spread(x):
        with tf.device("/TYPE:1"):
            a = tf.sinh(x)
        with tf.device("/TYPE:0"):
            return tf.atan(a)

    strategy = tf.distribute.MirroredStrategy(["/TYPE:0", "/TYPE:1"])
    with tensorflow_xpu.trace_placement() as report:
        with tf.device("/TYPE:1"):
            tf.exp(y)
        spread(x)
        strategy.run(lambda: tf.math.softplus(tf.ones([3])))
        tf.linalg.sqrtm(tf.eye(2))
    explained = [tensorflow_xpu.explain("MatMul", "float32"), tensorflow_xpu.explain("MatrixSquareRoot", "float32")]
    print(report)
    print(json.dumps([[[row.op, row.where, row.reason, report.counts[row]] for row in report.rows()],
                      [[e.where, e.on_xpu, e.reason] for e in explained]]))
"""


@pytest.mark.parametrize("its_type", ["XPU", "GPU"])
def test_several_devices_of_each_type(its_type):
    variables = {"TF_XPU_DEVICE_TYPE": its_type, "TF_XPU_DEVICE_COUNT": "2"}
    outcome = run_code(SEVERAL.replace("TYPE", its_type.lower()), environment=variables)
    assert outcome.returncode == 0, outcome
    rows, (product, root) = outcome.json
    found = {(op, where): (reason, count) for op, where, reason, count in rows}
    assert found["Exp", f"{its_type}:1"] == ("", 1)
    assert found["Sinh", f"{its_type}:1"] == ("", 1)
    assert found["Atan", f"{its_type}:0"] == ("", 1)
    assert found["Softplus", f"{its_type}:0"] == found["Softplus", f"{its_type}:1"] == ("", 1)
    assert found["MatrixSquareRoot", "CPU:0"] == (f"no kernel for {its_type}", 1)
    assert product == [its_type, True, ""]
    assert root == ["CPU", False, f"no kernel for {its_type}"]
    assert re.search(rf"^op +types +{its_type}  elsewhere  where", outcome.stdout, re.MULTILINE)
    assert re.search(rf"\d+ on the {its_type}, 1 elsewhere", outcome.stdout)


def test_a_trace_within_another_or_within_a_function_is_refused(xpu_device):
    with tensorflow_xpu.trace_placement() as report:
        with (
            pytest.raises(XPUError, match="being traced already: end that"),
            tensorflow_xpu.trace_placement(),
        ):
            pass
        tf.tanh(tf.ones([3]))
    assert report.on_xpu("Tanh") == 1

    @tf.function(autograph=False)
    def function():
        with tensorflow_xpu.trace_placement():
            return tf.ones([3])

    with pytest.raises(XPUError, match="from within a function"):
        function()
    nothing_is_left()


def test_what_is_asked_too_early_or_wrongly(xpu_device):
    with tensorflow_xpu.trace_placement() as report:
        for early in (report.assert_all_on_xpu, report.to_records, report.to_pandas):
            with pytest.raises(XPUError, match="inside the block"):
                early()
        assert "when the `with` has ended" in str(report)
        assert "incomplete" in repr(report)
    with pytest.raises(XPUError, match="expected a collection"):
        report.assert_all_on_xpu(allow="Atan")
    with pytest.raises(AssertionError, match="nothing ran"):
        report.assert_all_on_xpu()


def test_without_an_xpu():
    outcome = run_code(
        """
        import json
        import tensorflow_xpu
        from tensorflow_xpu import ops

        errors = []
        for call in (lambda: tensorflow_xpu.trace_placement().__enter__(), ops.list_ops):
            try:
                call()
            except tensorflow_xpu.XPUError as error:
                errors.append(str(error))
        print(json.dumps([errors, str(tensorflow_xpu.explain("MatMul"))]))
        """,
        environment={"TF_XPU_DISABLE": "1"},
    )
    errors, explained = outcome.json
    assert len(errors) == 2
    assert all("TensorFlow lists no XPU" in error and "doctor" in error for error in errors)
    assert explained == "MatMul runs on the CPU: no kernel for XPU"


def test_an_assertion_in_a_cluster_is_one(xpu_device):
    @tf.function(input_signature=[tf.TensorSpec([None])] * 2)
    def function(x, y):
        with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(x), tf.shape(y))]):
            return tf.tanh(x) * 2 + y

    with tensorflow_xpu.trace_placement() as report:
        function(tf.ones([3]), tf.ones([3]))
    ops = {record["op"] for record in report.to_records()}
    assert {"All", "Tanh"} <= ops  # assertions have no values, and are counted alone
    assert not any(op.startswith("_Xpu") for op in ops)


def test_the_assertion_names_each_op_and_its_reason(xpu_device):
    with tensorflow_xpu.trace_placement() as report:
        tf.linalg.sqrtm(tf.eye(2))
        tf.constant([1]) + 1
    with pytest.raises(AssertionError, match=re.escape("MatrixSquareRoot (float32) on CPU:0: no kernel for XPU")):
        report.assert_all_on_xpu()
    report.assert_all_on_xpu(allow={"MatrixSquareRoot"})
    with pytest.raises(AssertionError, match=r"AddV2 \(int32\) on host: int32"):
        report.assert_all_on_xpu(allow={"MatrixSquareRoot"}, strict=True)


def a_report():
    report = PlacementReport()
    report.counts[Row("Tanh", "float32", "XPU:0", "", "", True, False)] = 3
    report.counts[Row("Fill", "float32", "XPU:0", "", "", False, False)] = 12
    report.counts[Row("Atan", "float64", "CPU:0", "pinned", "<pinned>", False, True)] = 1
    report.counts[Row("Const", "float64", "CPU:0", "beside", "", False, False)] = 5
    report.optimized_away["Eig"] = 2
    report.complete = True
    return report


def test_the_table():
    assert str(a_report()).splitlines() == [
        "op    types    XPU  elsewhere  where  why",
        "Atan  float64              1?  CPU:0  <pinned>",
        "Fill  float32   12             XPU:0",
        "Tanh  float32   3+             XPU:0",
        "",
        "15 on the XPU, 1 elsewhere; 5 that move or name values are not listed",
        "+ in a loop: counted once per call of the function",
        "? in a branch: counted whether it was taken or not",
        "optimized away before they could run (constants, replaced, unused): Eig 2",
    ]


def test_html():
    text = a_report()._repr_html_()
    assert text.count("<tr") == text.count("</tr>") == 4
    assert "&lt;pinned&gt;" in text
    assert "<pinned>" not in text
    assert text.count("background") == 1  # Atan's row
    assert text.index("background") < text.index("Atan") < text.index("Fill")


def test_pandas_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(XPUError, match="needs pandas, which is not installed"):
        a_report().to_pandas()


def test_a_data_frame(xpu_device):
    frame = a_report().to_pandas()
    assert list(frame.columns) == list(a_report().to_records()[0])
    assert frame[["op", "on_xpu", "elsewhere"]].values.tolist() == [["Atan", 0, 1], ["Fill", 12, 0], ["Tanh", 3, 0]]
    assert (frame["on_xpu"].dtype, frame["in_loop"].dtype) == (np.int64, bool)
    assert frame.groupby("where")["on_xpu"].sum().to_dict() == {"CPU:0": 0, "XPU:0": 15}
    assert len(a_report().to_pandas(bookkeeping=True)) == 4
    with tensorflow_xpu.trace_placement() as report:
        tf.tanh(tf.ones([3]))
    assert report.to_pandas().set_index("op").loc["Tanh", "on_xpu"] == 1


def test_nothing_is_imported_until_it_is_used():
    code = "import sys, tensorflow_xpu; print([m for m in ('tensorflow', 'pandas', 'keras') if m in sys.modules])"
    assert run("-c", code).stdout.strip() == "[]"


def test_a_function_that_fails_is_in_the_report_of_its_own_trace_alone(xpu_device):
    @tf.function
    def fails(x, i):
        return tf.gather(tf.sin(x), i)

    @tf.function
    def works(x):
        return tf.cos(x)

    with tf.device(xpu_device):
        x = tf.ones([2])
        with tensorflow_xpu.trace_placement() as first, pytest.raises(tf.errors.InvalidArgumentError):
            fails(x, tf.constant([7])).numpy()
        with tensorflow_xpu.trace_placement() as second:
            works(x)
        with placement.record() as ran, pytest.raises(tf.errors.InvalidArgumentError):
            fails(tf.ones([3]), tf.constant([7])).numpy()
        with placement.record() as ran_then:
            works(tf.ones([3]))
    assert "Sin" in {row.op for row in first.rows()} and "Sin" in ran
    assert "Sin" not in {row.op for row in second.rows()} and "Sin" not in ran_then
    assert "Cos" in {row.op for row in second.rows()} and "Cos" in ran_then
