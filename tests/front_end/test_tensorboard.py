"""TensorBoard and xprof show what the profiler recorded of the XPU."""

import contextlib
import gzip
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

from tests.support.processes import environment_of, run, run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.slow]

PROGRAM = """
import json
import tensorflow as tf
import tensorflow_xpu

a, b = tf.random.normal([300, 200]), tf.random.normal([200, 100])
step = tf.function(lambda a, b: tf.nn.softmax(tf.matmul(a, b, name="product")))
step(a, b).numpy()
with tensorflow_xpu.profile("FOLDER") as profile:
    for _ in range(5):
        step(a, b).numpy()
    kept = tf.zeros([4 << 20])
    kept.numpy()
print(json.dumps([str(profile.xplane), [event.name for event in profile.events if event.kind == "command"]]))
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory, xpu_device):
    folder = tmp_path_factory.mktemp("logs")
    outcome = run_code(PROGRAM.replace("FOLDER", str(folder)))
    assert outcome.returncode == 0, outcome
    return folder, *outcome.json


@contextlib.contextmanager
def tensorboard(folder, said):
    """The address of a server for a folder, whose stderr goes to the file `said`."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", "0", "--load_fast", "false"]
    with open(said, "w") as file:
        process = subprocess.Popen(command, stderr=file, env=environment_of({"TF_XPU_DISABLE": "1"}))
    try:
        until = time.monotonic() + 120
        while (found := re.search(r"http://\S+:\d+/", said.read_text())) is None:
            assert process.poll() is None and time.monotonic() < until, said.read_text()
            time.sleep(0.2)
        yield found[0]
    finally:
        process.kill()
        process.wait()


def asked(address, **parameters):
    with urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(parameters)}", timeout=120) as answer:
        data = answer.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def test_tensorboard_serves_the_timeline_and_the_memory(profiled, tmp_path):
    folder, xplane, commands = profiled
    run_name, host = pathlib.Path(xplane).parent.name, pathlib.Path(xplane).name.removesuffix(".xplane.pb")
    with tensorboard(folder, tmp_path / "said") as address:
        plugin = f"{address}data/plugin/profile/"
        assert run_name in asked(plugin + "runs")
        tools = asked(plugin + "run_tools", run=run_name)
        assert {"trace_viewer@", "memory_profile"} <= set(tools)
        trace = asked(plugin + "data", run=run_name, tag="trace_viewer", host=host)["traceEvents"]
        memory = asked(plugin + "data", run=run_name, tag="memory_profile", host=host)
    process = next(e["pid"] for e in trace if e.get("args", {}).get("name") == "/device:CUSTOM:XPU:0")
    lines = {e["tid"]: e["args"]["name"] for e in trace if e.get("name") == "thread_name" and e["pid"] == process}
    shown = [e["name"] for e in trace if e.get("pid") == process and lines.get(e.get("tid")) == "compute"]
    assert [shown.count(name) for name in sorted(set(commands))] == [commands.count(n) for n in sorted(set(commands))]
    (product,) = {
        e["args"]["floating_point_operations"]
        for e in trace
        if e.get("name", "").startswith("MatMul") and e["pid"] == process
    }
    assert int(product) == 2 * 300 * 200 * 100
    snapshots = memory["memoryProfilePerAllocator"]["PluggableDevice_0_bfc"]["memoryProfileSnapshots"]
    assert any(s["activityMetadata"]["requestedBytes"] == str(16 << 20) for s in snapshots)


def test_xprof_reads_every_page(profiled):
    """A page computes of GPUs and TPUs alone what it says of devices (docs/front-end.md); none fails."""
    _, xplane, _ = profiled
    code = f"""
from xprof.convert import raw_to_tool_data as convert
for tool in convert.xspace_to_tool_names([{xplane!r}]):
    data, kind = convert.xspace_to_tool_data([{xplane!r}], tool, {{}})
    print(tool, len(data) > 100)
"""
    outcome = run("-c", code)
    assert outcome.returncode == 0, outcome
    pages = dict(line.split() for line in outcome.stdout.splitlines() if line.endswith(("True", "False")))
    assert {"trace_viewer@", "overview_page", "framework_op_stats", "memory_profile", "roofline_model"} <= set(pages)
    assert set(pages.values()) == {"True"}, outcome
