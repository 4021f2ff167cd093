"""The measurements of ``bench``, in processes of its own: functions that return the seconds of each round."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_xpu._bench import models as bench_models
from tensorflow_xpu._bench import ops as bench_ops
from tensorflow_xpu._devices import list_physical_devices
from tensorflow_xpu._measure import CPU, XPU, Rounds, in_turns, time_case
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu._worker import TaskError
from tensorflow_xpu.bench import CASES, DEVICE, MODELS, Case

ROUNDS = 15
LIMIT, MODEL_LIMIT = 1.0, 3.0  # seconds after which a case has been measured long enough


def _op(case: Case) -> Rounds:
    found = (c for c in bench_ops.SINGLE_OPS[case.group]() if (c.name, c.size) == (case.name, case.size))
    return time_case(next(found), ROUNDS, LIMIT)


def _model(case: Case) -> Rounds:
    repeats = bench_models.MODELS[case.name][2]
    on_xpu, on_cpu = (bench_models.several(case.name, device) for device in (XPU, CPU))
    rounds = in_turns(on_xpu, on_cpu, ROUNDS, warmup=1, limit=MODEL_LIMIT)
    return [(xpu / repeats, cpu / repeats) for xpu, cpu in rounds]


def _device() -> dict[str, str | None]:
    listed = list_physical_devices(device_type(), enabled=True)
    if not listed:
        raise TaskError(f"TensorFlow lists no {device_type()}: `python -m tensorflow_xpu doctor` says why")
    return {"backend": listed[0].subdevice_type, "hardware": listed[0].hardware_name}


TASKS: dict[str, Callable[[], Any]] = {
    DEVICE: _device,
    **{case.title: functools.partial(_model if case.group == MODELS else _op, case) for case in CASES},
}
