"""The core's traits of ops (tensorflow_plugin/framework/op_traits.h), compared with acts of their kernels.

A trait that is forgotten, or wrong, changes no result: a cluster is never captured, or an op stays out of clusters. So
the core notes for each op two acts of its kernels: waiting for the device, and locking a variable to write. The ops of
traits that no run shows are in tensorflow_plugin/framework/tests/op_traits_test.cc.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from tensorflow_xpu import _core
from tests.sweep.registrations import Registration
from tests.sweep.runner import Call, Rng, Var
from tests.sweep.sessions import Like

# Arguments in host memory from which random numbers start.
STARTS = {"seed", "key", "counter"}


@functools.cache
def all_traits() -> dict[str, set[str]]:
    return {op: set(traits) for op, traits in _core.ask_core("XpuCore_DescribeOps").items()}


def of(op: str) -> set[str]:
    return all_traits().get(op, set())


class Watch:
    """Looks at kernels while it lives; afterwards its attributes are sets of ops."""

    waited: set[str]
    locked_to_write: set[str]

    def __enter__(self) -> Watch:
        _core.ask_core("XpuCore_TakeObserved")  # what was done before
        return self

    def __exit__(self, *_) -> None:
        observed = _core.ask_core("XpuCore_TakeObserved")
        self.waited, self.locked_to_write = set(observed["waited"]), set(observed["locked_to_write"])


def problems(op: str, watch: Watch, has_variable: bool, all_kernels: bool) -> list[str]:
    """One line for each trait of an op that is not what was seen. `all_kernels`: all kernels of the op have run."""
    found = []
    if op in watch.waited and "WaitsForDevice" not in of(op):
        found.append(f"{op}: a kernel waited for the device; its registration lacks OpTrait::kWaitsForDevice")
    if all_kernels and op not in watch.waited and "WaitsForDevice" in of(op):
        found.append(f"{op}: no kernel waited for the device; its registration has OpTrait::kWaitsForDevice")
    writes = op in watch.locked_to_write
    if writes and "OnlyReads" in of(op):
        found.append(f"{op}: it locked a variable to write; its registration has OpTrait::kOnlyReads")
    if has_variable and not writes and "OnlyReads" not in of(op):
        found.append(f"{op}: it locked no variable to write; its registration lacks OpTrait::kOnlyReads")
    return found


def has_variable(calls: list[Call]) -> bool:
    """True if the op gets a variable, be it a resource or a reference."""
    with tf.device("/cpu:0"):
        arguments = calls[0].case.make(calls[0].types, Rng(calls[0].seed)).values()
    return any(isinstance(argument, (Var, Like)) for argument in arguments)


def registration_problems(registrations: list[Registration]) -> list[str]:
    """The mistakes in traits that the registrations of ops show."""
    found = []
    for r in registrations:
        if "CannotWait" not in of(r.op):
            found.append(f"{r}: a kernel of ours, and it lacks OpTrait::kCannotWait")
        if STARTS & set(r.host_args) and "DrawsFromStart" not in of(r.op):
            found.append(f"{r}: random numbers start in host memory; it lacks OpTrait::kDrawsFromStart")
        if r.label == "XpuOnHost" and not {"FollowsOperands", "OfTensorLists"} & of(r.op):
            found.append(f"{r}: has a kernel for host memory; it lacks OpTrait::kFollowsOperands")
    return found
