"""The package's view of devices: what is listed, by which names it is found, its memory, waiting for it."""

import dataclasses
import json
import os
import pathlib

import pytest

import tensorflow_xpu
from tests.support.installed import BACKENDS, is_bus
from tests.support.missing_capabilities import BACKEND
from tests.support.processes import run_code

pytestmark = pytest.mark.without_isolation


def test_every_installed_subdevice_type_is_listed(xpu_device):
    import tensorflow as tf

    now = tensorflow_xpu.get_subdevice_mapping()["XPU"]
    devices = tensorflow_xpu.list_physical_devices()
    enabled = [device.name for device in devices if device.enabled]
    assert enabled == [device.name for device in tf.config.list_physical_devices()]
    xpus = tensorflow_xpu.list_physical_devices("XPU")
    assert {d.subdevice_type: d.enabled for d in xpus} == {s: s == now for s in BACKENDS}
    assert [d.enabled for d in xpus] == sorted([d.enabled for d in xpus], reverse=True)
    assert tensorflow_xpu.list_physical_devices("XPU", enabled=False) == [d for d in xpus if not d.enabled]
    assert tensorflow_xpu.list_physical_devices("TPU") == []
    for device in xpus:
        assert device.hardware_name and device.vendor and device.instruction_set
        assert device.memory_total >= 2**20
        assert is_bus(device.bus_id, int(device.name.rsplit(":", 1)[1])), device
        assert device.gflops is None or device.gflops > 0
        assert device.bandwidth_bytes_per_s is None or device.bandwidth_bytes_per_s > 0
        assert device.numa_node is None or device.numa_node >= 0
        assert (device.memory_free is not None) == device.enabled


def test_the_processor_is_described(xpu_device):
    (cpu,) = tensorflow_xpu.list_physical_devices("CPU")
    assert (cpu.name, cpu.subdevice_type, cpu.enabled) == ("/physical_device:CPU:0", "CPU", True)
    assert f": {cpu.hardware_name}\n" in pathlib.Path("/proc/cpuinfo").read_text()
    assert 0 < cpu.memory_free <= cpu.memory_total
    assert cpu.memory_total <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    xpu = tensorflow_xpu.list_physical_devices("XPU")[0]
    if BACKEND != "XPU_OPENCL":  # whose devices have the names that their drivers give them
        assert (cpu.hardware_name, cpu.vendor) == (xpu.hardware_name, xpu.vendor)


def test_listing_makes_no_devices_and_counts_them_all():
    outcome = run_code(
        """
        import json, tensorflow_xpu
        devices = tensorflow_xpu.list_physical_devices("XPU")
        from tensorflow.python.eager import context
        made = context.context()._context_handle is not None
        print(json.dumps([[[d.name, d.memory_total, d.memory_free, d.index] for d in devices], made]))
        """,
        environment={"TF_XPU_DEVICE_COUNT": "3", "TF_XPU_MEMORY_LIMIT": "64MiB"},
    )
    seen, made = outcome.json
    assert not made
    for enabled, part in ((True, seen[:3]), (False, seen[3:])):
        free = 64 << 20 if enabled else None
        backends = 1 if enabled else len(BACKENDS) - 1
        assert part == [[f"/physical_device:XPU:{n}", 64 << 20, free, n] for n in range(3)] * backends, outcome


@pytest.mark.parametrize("environment", [{"TF_XPU_DISABLE": "1"}, {"TF_ENABLED_DEVICE_TYPES": "CPU"}])
def test_where_none_is_enabled_they_are_listed_all_the_same(environment):
    outcome = run_code(
        """
        import json, tensorflow_xpu
        print(json.dumps([[d.name, d.subdevice_type, d.enabled] for d in tensorflow_xpu.list_physical_devices()]))
        """,
        environment=environment,
    )
    cpu, *others = outcome.json
    assert cpu == ["/physical_device:CPU:0", "CPU", True]
    # Where the plugin is off, nobody asks what there is.
    types = tensorflow_xpu.SUBDEVICE_TYPES if "TF_XPU_DISABLE" in environment else BACKENDS
    expected = [["/physical_device:XPU:0", subdevice, False] for subdevice in types]
    assert sorted(others) == sorted(expected), outcome


def test_logical_devices_and_what_is_behind_them(xpu_device):
    outcome = run_code(
        """
        import json
        import tensorflow as tf, tensorflow_xpu
        physical = tf.config.list_physical_devices("XPU")
        tf.config.set_visible_devices([physical[2], physical[1]], "XPU")
        cpu = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu[0], [tf.config.LogicalDeviceConfiguration()] * 2)
        seen = [[d.name, d.subdevice_type, d.physical.name] for d in tensorflow_xpu.list_logical_devices()]
        with tf.device("/xpu:0"):
            kept = tf.zeros([1 << 18]) + 1
        names = ["/xpu:0", physical[2], tensorflow_xpu.list_logical_devices("XPU")[0], kept.device, 2]
        memory = [tensorflow_xpu.memory_info(name).current for name in names]
        free = [d.memory_total - d.memory_free for d in tensorflow_xpu.list_physical_devices("XPU", enabled=True)]
        buses = [tensorflow_xpu.get_device_details(name)["bus_id"] for name in names[:-1]]
        errors = []
        for f in (lambda: tensorflow_xpu.memory_info(0), lambda: tensorflow_xpu.memory_info("/xpu:2")):
            try:
                f()
            except tensorflow_xpu.XPUError as error:
                errors.append(str(error))
        print(json.dumps([seen, memory, free, buses, errors]))
        """,
        environment={"TF_XPU_DEVICE_COUNT": "3", "TF_XPU_MEMORY_LIMIT": "64MiB"},
    )
    seen, memory, free, buses, errors = outcome.json
    now = tensorflow_xpu.get_subdevice_mapping()["XPU"]
    assert seen == [
        ["/device:CPU:0", "CPU", "/physical_device:CPU:0"],
        ["/device:CPU:1", "CPU", "/physical_device:CPU:0"],
        ["/device:XPU:0", now, "/physical_device:XPU:2"],
        ["/device:XPU:1", now, "/physical_device:XPU:1"],
    ]
    assert memory[0] >= 1 << 20 and len(set(memory)) == 1
    assert free[0] == 0 and free[1] < 1 << 20 and free[2] == memory[0]
    assert len(set(buses)) == 1 and is_bus(buses[0], 2), buses
    assert "XPU:0 is not in use: it is not among" in errors[0]
    assert "there is no device '/xpu:2'" in errors[1]


def test_details_begin_with_the_hardwares_name(xpu_device):
    device = tensorflow_xpu.list_physical_devices("XPU")[0]
    details = tensorflow_xpu.get_device_details("/xpu:0")
    assert details["device_name"] == device.hardware_name != device.subdevice_type
    known = {name: value for name, value in dataclasses.asdict(device).items() if value is not None}
    assert {name: details[name] for name in known if name != "memory_free"} == {
        name: value for name, value in known.items() if name != "memory_free"
    }
    assert tensorflow_xpu.get_device_details("/cpu:0")["device_name"]
    other = tensorflow_xpu.list_physical_devices("XPU", enabled=False)[0]
    assert tensorflow_xpu.get_device_details(other)["subdevice_type"] == other.subdevice_type


@pytest.mark.parametrize("wrong", [None, 0.5, "/xpu:9", "xpu:a", "", "/tpu:0"])
def test_what_is_no_device(xpu_device, wrong):
    with pytest.raises(tensorflow_xpu.XPUError, match=r"expected a name|expected one such|TensorFlow has CPU:0, XPU:0"):
        tensorflow_xpu.get_device_details(wrong)


def test_synchronize_waits_for_the_device_and_lets_other_threads_run(xpu_device):
    outcome = run_code(
        """
        import json, threading, time
        import tensorflow as tf, tensorflow_xpu
        tensorflow_xpu.synchronize()
        x = tf.ones([64, 64])
        tensorflow_xpu.synchronize()
        times = []
        def timed(f):
            begin = time.perf_counter()
            f()
            times.append(time.perf_counter() - begin)
        timed(lambda: [tf.linalg.matmul(x, x) for _ in range(8)])
        done = threading.Event()
        ticks = []
        threading.Thread(target=lambda: [ticks.append(time.sleep(0.01)) for _ in range(10)]).start()
        timed(lambda: tensorflow_xpu.synchronize("/xpu:0"))
        during = len(ticks)
        timed(tensorflow_xpu.synchronize)
        print(json.dumps([times, during]))
        """,
        environment={"TF_XPU_FAULT": "command=MatMul:delay=50ms"},
    )
    (enqueued, waited, again), ticks = outcome.json
    assert enqueued < 0.2 < waited, outcome
    assert again < 0.1, outcome
    assert ticks >= 5, outcome


def test_synchronize_knows_devices(xpu_device):
    with pytest.raises(tensorflow_xpu.XPUError, match="no XPU of index 77"):
        tensorflow_xpu.synchronize(77)


def devices(*arguments, **environment):
    """The command, in a process that has TensorFlow already."""
    code = f"""
        import sys
        from tensorflow_xpu import __main__
        sys.argv[1:] = ["devices", *{arguments!r}]
        sys.exit(__main__.main())
    """
    return run_code(code, environment=environment)


def test_the_command_lists_devices(xpu_device):
    outcome = devices("--type", "xpu")
    assert outcome.returncode == 0, outcome
    lines = outcome.stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["device", "subdevice", "type"],
        *(
            ["XPU:0", d.subdevice_type, "yes" if d.enabled else "no"]
            for d in tensorflow_xpu.list_physical_devices("XPU")
        ),
    ]


def test_the_command_as_json_and_without_an_xpu():
    outcome = devices("--json", TF_XPU_DISABLE="1")
    assert outcome.returncode == 1, outcome
    fields = {field.name for field in dataclasses.fields(tensorflow_xpu.PhysicalDevice)}
    listed = 1 + len(tensorflow_xpu.SUBDEVICE_TYPES)
    assert [set(device) for device in json.loads(outcome.stdout)] == [fields] * listed
    assert "no XPU is enabled: `python -m tensorflow_xpu doctor`" in outcome.stderr
    outcome = devices("--type", "TPU")
    assert outcome.returncode == 1, outcome
    assert "there is no device of the type 'TPU': expected one of CPU, XPU" in outcome.stderr
