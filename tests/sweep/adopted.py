"""Ops whose kernels are TensorFlow's own, registered for XPU too (`Registry::Adopt`): datasets, iterators, collectives.

They take and give resources and variants, which the sweep can neither make nor compare. Each has a function here that
runs it on the device in scope and gives tensors that show its work. On both devices `tests/training/test_datasets.py`
calls them. Being here excuses an op from having a case only if TensorFlow has it for GPUs, with the same registrations.
"""

import itertools

import tensorflow as tf

raw = tf.raw_ops
VALUES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
ELEMENT = {"output_types": [tf.float32], "output_shapes": [[2]]}


def dataset(device):
    """A dataset of three elements, on the device: a GeneratorDataset."""
    with tf.device("/cpu:0"):
        on_host = tf.data.Dataset.from_tensor_slices(VALUES)
    return on_host.apply(tf.data.experimental.copy_to_device(device))._variant_tensor


def iterator(device, variant=None):
    """At its start, over `dataset` or another."""
    resource = raw.AnonymousIteratorV3(**ELEMENT)
    raw.MakeIterator(dataset=dataset(device) if variant is None else variant, iterator=resource)
    return resource


def elements(device, variant):
    """The elements of an iterator over a dataset."""
    resource, found = iterator(device, variant), []
    while True:
        try:
            found += raw.IteratorGetNext(iterator=resource, **ELEMENT)
        except tf.errors.OutOfRangeError:
            return found


def following(resource):
    return raw.IteratorGetNext(iterator=resource, **ELEMENT)


def over(make):
    """The elements, for an op that makes a dataset of another."""
    return lambda device: elements(device, make(dataset(device)))


def through(make):
    """The first element, for an op that makes an iterator."""

    def run(device):
        resource = make()
        raw.MakeIterator(dataset=dataset(device), iterator=resource)
        return following(resource)

    return run


def mapped(device):
    """The CPU has the op under another name."""
    function = tf.function(lambda v: v * 10, input_signature=[tf.TensorSpec([2])]).get_concrete_function()
    op = raw.MapDataset if device == "/cpu:0" else raw.ExperimentalMapDataset
    return elements(device, op(input_dataset=dataset(device), other_arguments=[], f=function, **ELEMENT))


def named_iterator(device):
    resource = raw.IteratorV2(shared_name="", container="", **ELEMENT)
    raw.MakeIterator(dataset=dataset(device), iterator=resource)
    name = raw.IteratorToStringHandle(resource_handle=resource)
    return following(raw.IteratorFromStringHandleV2(string_handle=name, **ELEMENT))


def deleted(device):
    resource, deleter = raw.AnonymousIteratorV2(**ELEMENT)
    raw.MakeIterator(dataset=dataset(device), iterator=resource)
    first = following(resource)
    raw.DeleteIterator(handle=resource, deleter=deleter)
    return first


def optional(device):
    present, missing = raw.OptionalFromValue(components=[tf.constant(VALUES)]), raw.OptionalNone()
    value = raw.OptionalGetValue(optional=present, output_types=[tf.float32], output_shapes=[[3, 2]])
    return [*value, raw.OptionalHasValue(optional=present), raw.OptionalHasValue(optional=missing)]


def optional_element(device):
    at = raw.IteratorGetNextAsOptional(iterator=iterator(device), **ELEMENT)
    return raw.OptionalGetValue(optional=at, **ELEMENT)


def options(device):
    variant = raw.OptionsDataset(input_dataset=dataset(device), serialized_options=b"\x0a\x00", **ELEMENT)
    serialized = raw.GetOptions(input_dataset=variant)
    with tf.device("/cpu:0"):
        return [tf.strings.length(serialized)]


def sparse(device):
    with tf.device("/cpu:0"):
        tensor = tf.sparse.from_dense([[0.0, 7.0], [8.0, 0.0]])
        serialized = tf.io.serialize_sparse(tensor, out_type=tf.variant)
    return list(raw.DeserializeSparse(serialized_sparse=serialized, dtype=tf.float32))


def ragged(device):
    with tf.device("/cpu:0"):
        encoded = tf.ragged.constant([[1.0, 2.0], [], [3.0]])._to_variant()
    splits, values = raw.RaggedTensorFromVariant(
        encoded_ragged=encoded, input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.float32
    )
    return [*splits, values]


# Groups are made once, and each is of devices of one type.
GROUPS = itertools.count(1000, 2)


def gathered(device):
    key = next(GROUPS)
    return raw.CollectiveGather(input=VALUES, group_size=1, group_key=key, instance_key=key + 1, shape=[3, 2])


def exchanged(device):
    communicator = raw.CollectiveInitializeCommunicator(group_key=next(GROUPS), rank=0, group_size=1)
    group = tf.zeros([0, 0], tf.int32)
    return raw.CollectiveAllToAllV3(input=VALUES[:1], communicator=communicator, group_assignment=group)


OPS = {
    "AnonymousIterator": through(lambda: raw.AnonymousIterator(**ELEMENT)),
    "AnonymousIteratorV2": through(lambda: raw.AnonymousIteratorV2(**ELEMENT)[0]),
    "AnonymousIteratorV3": through(lambda: raw.AnonymousIteratorV3(**ELEMENT)),
    "CollectiveAllToAllV3": exchanged,
    "CollectiveGather": gathered,
    "CollectiveInitializeCommunicator": exchanged,
    "DeleteIterator": deleted,
    "DeserializeSparse": sparse,
    "ExperimentalMapDataset": mapped,
    "ExperimentalSleepDataset": over(
        lambda v: raw.ExperimentalSleepDataset(input_dataset=v, sleep_microseconds=1, **ELEMENT)
    ),
    "FinalizeDataset": over(lambda v: raw.FinalizeDataset(input_dataset=v, **ELEMENT)),
    "GeneratorDataset": lambda device: elements(device, dataset(device)),
    "GetOptions": options,
    "IteratorFromStringHandleV2": named_iterator,
    "IteratorGetNext": lambda device: following(iterator(device)),
    "IteratorGetNextAsOptional": optional_element,
    "IteratorGetNextSync": lambda device: raw.IteratorGetNextSync(iterator=iterator(device), **ELEMENT),
    "IteratorToStringHandle": named_iterator,
    "IteratorV2": named_iterator,
    "MakeIterator": lambda device: following(iterator(device)),
    "OptionalFromValue": optional,
    "OptionalGetValue": optional,
    "OptionalHasValue": optional,
    "OptionalNone": optional,
    "OptionsDataset": over(lambda v: raw.OptionsDataset(input_dataset=v, serialized_options=b"", **ELEMENT)),
    "PrefetchDataset": over(lambda v: raw.PrefetchDataset(input_dataset=v, buffer_size=2, **ELEMENT)),
    "RaggedTensorFromVariant": ragged,
    "SleepDataset": over(lambda v: raw.SleepDataset(input_dataset=v, sleep_microseconds=1, **ELEMENT)),
    "UnwrapDatasetVariant": over(
        lambda v: raw.UnwrapDatasetVariant(input_handle=raw.WrapDatasetVariant(input_handle=v))
    ),
    "WrapDatasetVariant": over(lambda v: raw.UnwrapDatasetVariant(input_handle=raw.WrapDatasetVariant(input_handle=v))),
}
