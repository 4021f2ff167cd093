"""Ops that wait for other ops of the same step, beside clusters that must not make the latter wait for the former.

tensorflow_plugin/graph/tests/may_wait.txt lists the ops that may wait. Each one is in a graph here, or NO_GRAPH says
why it needs none.
"""

import itertools
import pathlib
import re
import textwrap
import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import run_code

LISTED = pathlib.Path(__file__).parents[2] / "tensorflow_plugin" / "graph" / "tests" / "may_wait.txt"
SECONDS = 60  # after which a step hangs
X = np.array([1.0, 0.5, 0.2, 0.4], np.float32)

v1, raw = tf.compat.v1, tf.raw_ops
names = (f"shared_{number}" for number in itertools.count())
FLOAT = {"dtypes": [tf.float32]}


def after(op, build):
    with tf.control_dependencies([op]):
        return build()


def fed(factor=1.0):
    """A number of the step, 1 times the factor: TensorFlow cannot fold or merge what reads it."""
    return v1.get_default_graph().get_tensor_by_name("x:0")[0] * factor


# Each function below makes the ops of one graph: what waits, and what lets it go on. Both are functions, called where
# the graph has a place for the op.


def full_queue(enqueue, dequeue, make):
    queue = make()
    return lambda: after(enqueue(queue), lambda: enqueue(queue)), lambda: dequeue(queue)


def empty_queue(enqueue, dequeue, make):
    queue = make()
    return lambda: dequeue(queue), lambda: enqueue(queue)


def one(**arguments):
    return {"components": [tf.constant(1.0)], **arguments}


def many(**arguments):
    return {"components": [tf.constant([1.0])], **arguments}


def queues(version):
    """The ops of queues: "" for handles that are references, "V2" for resources."""

    def make():
        return getattr(raw, f"FIFOQueue{version}")(
            component_types=[tf.float32], shapes=[[]], capacity=1, shared_name=next(names)
        )

    def op(name, **arguments):
        return lambda queue: getattr(raw, f"Queue{name}{version}")(handle=queue, **arguments)

    of_one, of_many = (lambda queue: op("Enqueue", **one())(queue)), (lambda queue: op("EnqueueMany", **many())(queue))
    types = {"component_types": [tf.float32]}
    takers = {
        "Dequeue": op("Dequeue", **types),
        "DequeueMany": op("DequeueMany", n=1, **types),
        "DequeueUpTo": op("DequeueUpTo", n=1, **types),
    }
    graphs = {
        f"QueueEnqueue{version}": lambda: full_queue(of_one, takers["Dequeue"], make),
        f"QueueEnqueueMany{version}": lambda: full_queue(of_many, takers["Dequeue"], make),
    }
    for name, taker in takers.items():
        graphs[f"Queue{name}{version}"] = lambda taker=taker: empty_queue(of_one, taker, make)
    return graphs


def reader(read, **arguments):
    queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]], capacity=1, shared_name=next(names))
    handle = raw.IdentityReaderV2(shared_name=next(names))
    return (
        lambda: read(reader_handle=handle, queue_handle=queue, **arguments),
        lambda: raw.QueueEnqueueV2(handle=queue, components=[tf.constant("a")]),
    )


def stages():
    def area(**arguments):
        return {"shared_name": next(names), **arguments, **FLOAT}

    def stage(area):
        return raw.Stage(values=[tf.constant(1.0)], **{k: v for k, v in area.items() if k != "dtypes"})

    def full():
        place = area(capacity=1)
        return lambda: after(stage(place), lambda: stage(place)), lambda: raw.Unstage(**place)

    def empty(take):
        place = area()
        return lambda: take(place), lambda: stage(place)

    graphs = {
        "Stage": full,
        "Unstage": lambda: empty(lambda place: raw.Unstage(**place)),
        "StagePeek": lambda: empty(lambda place: raw.StagePeek(index=0, **place)),
    }
    for kind in ("Map", "OrderedMap"):

        def op(name, kind=kind, **arguments):
            return getattr(raw, kind + name)(**arguments)

        def put(place, key, op=op):
            key = tf.constant(key, tf.int64)
            return op("Stage", key=key, indices=tf.constant([0]), values=[tf.constant(1.0)], **place)

        def full_map(op=op, put=put):
            place = area(capacity=1)
            return (
                lambda: after(put(place, 0), lambda: put(place, 1)),
                lambda: op("UnstageNoKey", indices=tf.constant([0]), **place),
            )

        def empty_map(name, op=op, put=put, **key):
            place = area()
            return (
                lambda: op(name, indices=tf.constant([0]), **{k: v() for k, v in key.items()}, **place),
                lambda: put(place, 0),
            )

        def zero():
            return tf.constant(0, tf.int64)

        graphs[f"{kind}Stage"] = full_map
        graphs[f"{kind}UnstageNoKey"] = lambda e=empty_map: e("UnstageNoKey")
        graphs[f"{kind}Unstage"] = lambda e=empty_map: e("Unstage", key=zero)
        graphs[f"{kind}Peek"] = lambda e=empty_map: e("Peek", key=zero)
    return graphs


def mutex():
    handle = raw.MutexV2(shared_name=next(names))
    held = raw.MutexLock(mutex=handle)
    return lambda: after(held, lambda: raw.MutexLock(mutex=handle)), lambda: raw.ConsumeMutexLock(mutex_lock=held)


def barrier():
    handle = raw.Barrier(component_types=[tf.float32], shapes=[[]], shared_name=next(names))
    return (
        lambda: raw.BarrierTakeMany(handle=handle, num_elements=1, component_types=[tf.float32]),
        lambda: raw.BarrierInsertMany(handle=handle, keys=["a"], values=tf.constant([1.0]), component_index=0),
    )


def accumulator(prefix):
    make = getattr(raw, {"Accumulator": "ConditionalAccumulator"}.get(prefix, f"{prefix[:-11]}ConditionalAccumulator"))
    handle = make(dtype=tf.float32, shape=[1], shared_name=next(names))
    step, gradient = tf.constant(0, tf.int64), {"gradient": tf.constant([1.0])}
    if prefix == "SparseAccumulator":
        indices = tf.constant([0], tf.int64)
        gradient = {
            "gradient_indices": indices,
            "gradient_values": tf.constant([1.0]),
            "gradient_shape": tf.constant([1], tf.int64),
            "has_known_shape": True,
        }
    take, apply = getattr(raw, f"{prefix}TakeGradient"), getattr(raw, f"{prefix}ApplyGradient")
    return (
        lambda: take(handle=handle, num_required=1, dtype=tf.float32),
        lambda: apply(handle=handle, local_step=step, **gradient),
    )


def waiting_python():
    """A Python function that waits for another one, and the other one."""
    event = threading.Event()

    def wait(x):
        return x if event.wait(SECONDS) else x - 1.0

    def go(x):
        event.set()
        return x

    return wait, go


def python(stateful=True, wrap=None):
    wait, go = waiting_python()
    x = fed()

    def call(x):
        return tf.ensure_shape(v1.py_func(wait, [x], tf.float32, stateful=stateful), [])

    return lambda: (wrap or (lambda body, x: body(x)))(call, x), lambda: v1.py_func(go, [x], tf.float32)


def eager_python():
    wait, go = waiting_python()
    x = fed()
    return lambda: tf.py_function(wait, [x], tf.float32), lambda: tf.py_function(go, [x], tf.float32)


def in_function(body, x):
    return tf.function(body, experimental_attributes={"_noinline": True})(x)


def in_loop(body, x):
    return tf.while_loop(lambda i, u: i < 2, lambda i, u: (i + 1, body(u)), [0, x])[1]


def in_branch(body, x):
    return tf.cond(x > 0.0, lambda: body(x), lambda: x)


def in_case(body, x):
    return tf.switch_case(tf.cast(x, tf.int32), [lambda: x, lambda: body(x)])


def in_map(body, x):
    return tf.map_fn(body, tf.stack([x]))  # one, since two would take both threads of a small machine


def data(take):
    """A data set whose only element comes when Python says so."""
    wait, go = waiting_python()
    made = tf.data.Dataset.from_tensors(1.0).map(lambda x: tf.ensure_shape(v1.py_func(wait, [x], tf.float32), []))
    shapes = {"output_types": [tf.float32], "output_shapes": [[]]}
    return lambda: take(made, shapes), lambda: v1.py_func(go, [fed()], tf.float32)


def iterator_of(dataset, shapes):
    iterator = raw.IteratorV2(shared_name=next(names), container="", **shapes)
    made = raw.MakeIterator(dataset=dataset._variant_tensor, iterator=iterator)
    return iterator, made


def next_of(op):
    def take(dataset, shapes):
        iterator, made = iterator_of(dataset, shapes)
        return after(made, lambda: op(iterator=iterator, **shapes))

    return take


def batched(dataset, shapes):
    return raw.DatasetToSingleElement(dataset=dataset._variant_tensor, **shapes)


def reduced(dataset, shapes):
    return dataset.reduce(0.0, lambda total, x: total + x)


def batch():
    """The first element of a batch of two waits for the second."""

    def op(shared_name, factor):
        return raw.Batch(
            in_tensors=[tf.reshape(fed(factor), [1])],
            num_batch_threads=1,
            max_batch_size=2,
            allowed_batch_sizes=[2],
            batch_timeout_micros=SECONDS * 1_000_000,
            grad_timeout_micros=0,
            shared_name=shared_name,
            batching_queue="queue",
        )

    name = next(names)
    return lambda: op(name, 1.0)[1], lambda: op(name, 2.0)[1]


def batch_function():
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def double(x):
        return x * 2.0

    def op(shared_name, factor):
        return raw.BatchFunction(
            in_tensors=[tf.reshape(fed(factor), [1])],
            captured_tensors=[],
            f=double.get_concrete_function(),
            num_batch_threads=1,
            max_batch_size=2,
            allowed_batch_sizes=[2],
            batch_timeout_micros=SECONDS * 1_000_000,
            Tout=[tf.float32],
            shared_name=shared_name,
            batching_queue="queue",
        )

    name = next(names)
    return lambda: op(name, 1.0), lambda: op(name, 2.0)


GRAPHS = {
    **queues("V2"),
    **queues(""),
    **stages(),
    "ReaderReadV2": lambda: reader(raw.ReaderReadV2),
    "ReaderReadUpToV2": lambda: reader(raw.ReaderReadUpToV2, num_records=1),
    "MutexLock": mutex,
    "BarrierTakeMany": barrier,
    "AccumulatorTakeGradient": lambda: accumulator("Accumulator"),
    "ResourceAccumulatorTakeGradient": lambda: accumulator("ResourceAccumulator"),
    "SparseAccumulatorTakeGradient": lambda: accumulator("SparseAccumulator"),
    "PyFunc": python,
    "PyFuncStateless": lambda: python(stateful=False),
    "EagerPyFunc": eager_python,
    "IteratorGetNext": lambda: data(next_of(raw.IteratorGetNext)),
    "IteratorGetNextSync": lambda: data(next_of(raw.IteratorGetNextSync)),
    "IteratorGetNextAsOptional": lambda: data(next_of(raw.IteratorGetNextAsOptional)),
    "DatasetToSingleElement": lambda: data(batched),
    "ReduceDataset": lambda: data(reduced),
    "Batch": batch,
    "BatchFunction": batch_function,
    # An op that runs functions waits if they do.
    "a call": lambda: python(wrap=in_function),
    "a loop": lambda: python(wrap=in_loop),
    "a branch": lambda: python(wrap=in_branch),
    "a case": lambda: python(wrap=in_case),
    "a map": lambda: python(wrap=in_map),
    "a loop in a call": lambda: python(wrap=lambda body, x: in_function(lambda y: in_loop(body, y), x)),
    "a call in a loop": lambda: python(wrap=lambda body, x: in_loop(lambda y: in_function(body, y), x)),
}

# Why an op has no graph above, by the names that match.
NO_GRAPH = {
    r"(_?XlaRecv|_?XlaSend|Xla|_Xla|TPU|_TPU|Infeed|Outfeed).*": "for TPUs and XLA",
    r".*(TPU|DTensor|Boosted|Xla|Minibatch|DedupData|CooTensor).*": "for TPUs and XLA, or without a kernel",
    r"(AllToAll|CollectivePermute|CrossReplicaSum|RiscWhile|WorkerHeartbeat|GlobalIterId|UpdateTaskId.*)": "for TPUs",
    r"_?Nccl.*|Cudnn.*": "for GPUs",
    r"Collective.*": "all members of a group have the same graph, and so the same clusters",
    r"ReaderRead(UpTo)?": "no reader is made with a reference any more",
    r"MultiDeviceIteratorGetNextFromShard": "a session with one cannot be closed while its data set waits",
    r"_?(Host)?(Send|Recv)": "partial runs: tests/graphs/test_sessions.py",
    r"(Unbatch|UnbatchGrad)": "waits for the same batch as the Batch before it",
    r"(Rpc|DataService).*|DeleteRpcFutureResource": "waits for another process",
    r".*Dataset(V\d)?": "makes a data set, of which nothing is taken yet",
    r".*(Queue|Stage|Map|OrderedMap)(Size|Clear|Close|IsClosed|IncompleteSize|SizeV2|CloseV2|IsClosedV2)": "at once",
    r".*Barrier(Close|ReadySize|IncompleteSize|InsertMany)": "at once",
    r".*Accumulator(ApplyGradient|NumAccumulated|SetGlobalStep)": "at once",
    r"Reader(Reset|RestoreState|SerializeState|NumRecordsProduced|NumWorkUnitsCompleted)(V2)?": "at once",
    r".*(Queue|Reader|Barrier|Accumulator|Mutex|Iterator|Handle)(V\d)?": "makes a handle",
    r".*(Generator|Cache|Writer|Counter)(V\d)?": "makes a handle",
    r"(ConsumeMutexLock|MakeIterator|MultiDeviceIteratorInit|TakeManySparseFromTensorsMap)": "at once",
    r"(Delete|IteratorFrom|IteratorTo|IteratorGetDevice|IteratorGetModel|MultiDeviceIteratorFrom).*": "at once",
    r"(MultiDeviceIteratorTo|Serialize|Deserialize|Flush).*": "at once",
    r"(Initialize|Import|Experimental|StatsAggregator|SetStats|Add(Many)?Sparse|Anonymous|GetSession).*": "at once",
    r"(DatasetToTFRecord|Save|Restore|MergeV2|LoadAndRemap|FileSystem|Dump|Debug).*": "files",
    r"(Calibration|DistributedSave).*": "files",
    r"(NegTrain|Skipgram|RecordInput|GuaranteeConst|DeviceIndex|_ScopedAllocator.*|RemoteCall)": "at once",
}


def run(make):
    """Makes and runs a graph in which one cluster of all device ops would hang. Returns its number of clusters."""
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [4], "x")
        with tf.device("/cpu:0"):
            sorted_x = tf.sort(x)
            wait, signal = make()
            waited = tf.nest.flatten(wait())
            # A reader of the value, where it is a number: TensorFlow drops stateless ops that nobody reads.
            values = [value for value in waited if getattr(value, "dtype", None) in (tf.float32, tf.int64)]
            total = tf.add_n([tf.constant(0.0), *(tf.reduce_sum(tf.cast(value, tf.float32)) for value in values)])
        with tf.control_dependencies(waited):
            later = tf.cos(x + total) * 2.0 + 1.0
        earlier = tf.tanh(sorted_x) * 3.0 + 2.0
        with tf.control_dependencies([earlier]), tf.device("/cpu:0"):
            signalled = tf.nest.flatten(signal())
        options = v1.RunOptions(timeout_in_ms=SECONDS * 1000, output_partition_graphs=True)
        graphs = v1.RunMetadata()
        with v1.Session() as session:
            fetches = [later, earlier, total, *(getattr(value, "op", value) for value in signalled)]
            got = session.run(fetches, {x: X}, options, graphs)
    np.testing.assert_allclose(got[0], np.cos(X + got[2]) * 2 + 1, 1e-5)
    np.testing.assert_allclose(got[1], np.tanh(np.sort(X)) * 3 + 2, 1e-5)
    return sum(node.op == "_XpuCluster" for graph in graphs.partition_graphs for node in graph.node)


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize("name", GRAPHS)
def test_no_cluster_makes_an_op_wait_for_ever(name, xpu_device):
    assert run(GRAPHS[name]) >= 2


def test_every_op_that_may_wait_has_a_graph_or_a_reason():
    """Fails for an op of the list that neither table knows, and for a row of a table that matches none."""
    listed = LISTED.read_text().split()
    left = [op for op in listed if op not in GRAPHS]
    unknown = [op for op in left if not any(re.fullmatch(pattern, op) for pattern in NO_GRAPH)]
    assert not unknown
    assert not [pattern for pattern in NO_GRAPH if not any(re.fullmatch(pattern, op) for op in left)]
    assert not [op for op in GRAPHS if " " not in op and op not in listed]


def in_process(code):
    """The output of a program, in a process that is stopped if it hangs.

    The process ends at once. When Python ends, TensorFlow waits for elements that a generator is to give.
    """
    start = "import os, queue, sys, threading\nimport numpy as np, tensorflow as tf\n"
    outcome = run_code(f"{start}{textwrap.dedent(code)}\nsys.stdout.flush()\nos._exit(0)\n")
    assert outcome.returncode == 0, outcome
    return [float(word) for word in outcome.stdout.split()]


def test_two_critical_sections(xpu_device):
    code = """
        state, section = tf.Variable(tf.ones([3])), tf.CriticalSection()

        @tf.function
        def update(value):
            def inside():
                new = state.read_value() * 0.9 + tf.nn.relu(value)
                state.assign(new)
                return new * 2.0
            return section.execute(inside) + section.execute(inside)

        for k in range(6):
            update(tf.constant([1.0, 2.0, 3.0]) * k)
        print(*state.numpy())
    """
    expected = np.ones(3)
    for k in range(6):
        for _ in range(2):
            expected = expected * 0.9 + np.array([1.0, 2.0, 3.0]) * k
    np.testing.assert_allclose(in_process(code), expected, 1e-5)


def test_a_data_set_that_waits_for_what_is_made_of_its_elements(xpu_device):
    """An environment of reinforcement learning: a state, an action, and the state after it."""
    code = """
        actions = queue.Queue()

        def world():
            state = np.ones(4, np.float32)
            while True:
                yield state
                state = (state * 0.9 + actions.get()).astype(np.float32)

        def act(action):
            actions.put(np.asarray(action))
            return np.int32(0)

        states = iter(tf.data.Dataset.from_generator(world, output_signature=tf.TensorSpec([4], tf.float32)))
        weights = tf.Variable(tf.eye(4) * 0.5)

        @tf.function
        def transition():
            before = next(states)
            action = tf.tanh(tf.linalg.matvec(weights, before)) * 0.3
            tf.numpy_function(act, [action], tf.int32)
            return next(states)

        print(*transition().numpy())
    """
    np.testing.assert_allclose(in_process(code), [0.9 + np.tanh(0.5) * 0.3] * 4, 1e-5)


def test_two_data_sets_that_meet(xpu_device):
    code = """
        meeting = threading.Barrier(2)

        def numbers(start):
            for i in range(4):
                meeting.wait()
                yield np.float32(start + i)

        first, second = (
            iter(tf.data.Dataset.from_generator(lambda s=s: numbers(s), output_signature=tf.TensorSpec([], tf.float32)))
            for s in (0, 10)
        )
        f = tf.function(lambda: (next(first) + 1.0) * 2.0 + next(second) * 100.0)
        print(*(f().numpy() for _ in range(4)))
    """
    assert in_process(code) == [(i + 1) * 2.0 + (10 + i) * 100.0 for i in range(4)]


def test_several_loops_beside_ops_that_may_wait(xpu_device):
    """One loop after the other becomes one op, and each time the ops that may wait are looked at anew."""
    code = """
        def shifted(x):
            return tf.ensure_shape(tf.numpy_function(lambda x: x + np.float32(1), [x], tf.float32), [2])

        def loop(body, n, x):
            return tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, body(x)), (0, x))[1]

        @tf.function
        def several(x, n):
            halved = loop(lambda x: x * 0.5 + 1.0, n, shifted(x))
            turned = loop(lambda x: tf.sin(x) + 1.0, n, x)
            back = loop(lambda x: tf.cos(x) + 1.0, n, turned)
            return tf.concat([shifted(halved), turned, back], 0)

        print(*several(tf.constant([1.0, 0.5]), tf.constant(5)).numpy())
    """
    x = np.array([1.0, 0.5])
    halved, turned = x + 1, x
    for _ in range(5):
        halved, turned = halved * 0.5 + 1, np.sin(turned) + 1
    back = turned
    for _ in range(5):
        back = np.cos(back) + 1
    np.testing.assert_allclose(in_process(code), [*(halved + 1), *turned, *back], 1e-5)
