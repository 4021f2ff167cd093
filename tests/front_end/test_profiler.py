"""The XPU's events in TensorFlow's profiler and tensorflow_xpu.profile."""

import collections
import json
import pathlib
import re

import pytest

from tests.support.differences import COPIES_BETWEEN_DEVICES
from tests.support.installed import ROOT
from tests.support.missing_capabilities import BACKEND
from tests.support.processes import run_code

PROGRAM = """
import json, time
import numpy as np
import tensorflow as tf
import tensorflow_xpu

a, b = tf.random.normal([300, 200]), tf.random.normal([200, 100])

@tf.function
def step(a, b):
    return tf.nn.softmax(tf.matmul(a, b, name="product"), name="shares")

for _ in range(3):
    step(a, b).numpy()
large = tf.random.normal([600, 600])
tf.matmul(large, large).numpy()  # what is made once is made

with tensorflow_xpu.profile("FOLDER") as profile:
    for _ in range(5):
        step(a, b).numpy()
    tf.matmul(a, b)
    tf.constant(np.ones([1000, 7], np.float32)).numpy()
    kept = tf.zeros([30 << 20])  # beyond what the allocator has
    kept[0].numpy()
    begin = time.time_ns()
    for _ in range(20):
        y = tf.matmul(large, large)
    y.numpy()
    wall = time.time_ns() - begin

unseen = tf.matmul(a, b).numpy()
with tensorflow_xpu.profile("FOLDER") as second:
    (a * 3).numpy()
print(json.dumps({
    "events": [vars(e) for e in profile.events],
    "second": [vars(e) for e in second.events],
    "wall": wall,
    "table": str(profile),
    "warnings": profile.warnings,
    "xplane": str(profile.xplane),
    "chrome": str(profile.chrome_trace),
}))
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory, xpu_device):
    folder = tmp_path_factory.mktemp("profile")
    outcome = run_code(PROGRAM.replace("FOLDER", str(folder)))
    assert outcome.returncode == 0, outcome
    result = outcome.json
    assert result["warnings"] == []
    return result


def of(profiled, **wanted):
    return [e for e in profiled["events"] if all(e[key] == value for key, value in wanted.items())]


@pytest.mark.of_hooks("copies")  # which sees what a stream is for
@pytest.mark.without_isolation
def test_a_product_has_its_op_its_flops_and_its_bytes(profiled):
    eager = [e for e in of(profiled, op_type="MatMul", device="XPU:0", op="MatMul") if e["flops"] < 20_000_000]
    assert len(eager) == 1  # the others are within clusters, or larger, or after the end
    assert eager[0]["name"].partition(": ")[0] == "MatMul of float"
    assert (eager[0]["kind"], eager[0]["line"]) == ("command", "compute")
    assert eager[0]["flops"] == 2 * 300 * 200 * 100
    assert eager[0]["bytes"] == 4 * (300 * 200 + 200 * 100 + 300 * 100)


@pytest.mark.of_hooks("clusters")
@pytest.mark.of_hooks("copies")  # which sees what a stream is for
@pytest.mark.without_isolation
@pytest.mark.host_only
def test_commands_within_clusters_are_nested_and_named_by_their_ops(profiled):
    clusters = of(profiled, kind="cluster", line="compute")
    assert len(clusters) == 5
    shares = []
    for cluster in clusters:
        begin, end = cluster["start_ns"], cluster["start_ns"] + cluster["duration_ns"]
        within = [
            e
            for e in of(profiled, kind="command")
            if begin <= e["start_ns"] and e["start_ns"] + e["duration_ns"] <= end and e["device"] == "XPU:0"
        ]
        ops = {e["op"].rpartition("/")[2]: e for e in within}
        assert {"product", "shares"} <= set(ops), ops
        assert ops["product"]["flops"] == 12_000_000
        assert ops["product"]["op_type"] == "MatMul"
        assert re.fullmatch("MatMul of float: (panels|oneDNN( in parts)?)", ops["product"]["name"])
        shares.append(sum(e["duration_ns"] for e in within) / cluster["duration_ns"])
    assert max(shares) <= 1, shares
    assert max(shares) > 0.3, shares  # of the one that others on the machine disturbed least


@pytest.mark.without_isolation
def test_times_add_up_to_the_time_that_passed(profiled):
    large = [e for e in of(profiled, op_type="MatMul") if e["flops"] == 2 * 600**3]
    assert len(large) == 20
    busy = sum(e["duration_ns"] for e in large)
    span = large[-1]["start_ns"] + large[-1]["duration_ns"] - large[0]["start_ns"]
    assert busy <= span * 1.001 and span <= profiled["wall"] * 1.001  # one after the other
    assert busy > 0.25 * profiled["wall"]  # others run meanwhile


@pytest.mark.without_isolation
def test_copies_and_memory_are_seen(profiled):
    copies = collections.Counter((e["name"], e["bytes"]) for e in of(profiled, kind="copy"))
    assert copies[("copy from the host", 2 * 28_000)] == 1  # read and written
    assert copies[("copy to the host", 2 * 28_000)] >= 1
    assert copies[("copy to the host", 2 * 4 * 600 * 600)] == 1
    allocated = of(profiled, kind="allocate", line="memory")
    assert [e["bytes"] for e in allocated if e["bytes"] >= 120 << 20], allocated


@pytest.mark.without_isolation
def test_only_what_ran_in_the_session_is_in_it(profiled):
    # The product between the two is in none, and the second has nothing of the first.
    assert {e["op_type"] for e in profiled["second"] if e["kind"] == "command"} == {"Mul"}


@pytest.mark.of_hooks("copies")  # which sees what a stream is for
@pytest.mark.without_isolation
def test_the_chrome_trace_has_the_same_events(profiled):
    trace = json.loads(pathlib.Path(profiled["chrome"]).read_text())["traceEvents"]
    process = next(e["pid"] for e in trace if e["name"] == "process_name" and "XPU:0" in e["args"]["name"])
    threads = {e["tid"]: e["args"]["name"] for e in trace if e["pid"] == process and e["name"] == "thread_name"}
    assert {"compute", "compute: ops"} <= set(threads.values())
    products = [
        e for e in trace if e["ph"] == "X" and e["pid"] == process and e["args"].get("flops") == str(2 * 600**3)
    ]
    commands = [e for e in products if threads[e["tid"]] == "compute"]
    measured = sum(e["duration_ns"] for e in profiled["events"] if e["flops"] == 2 * 600**3)
    assert len(commands) == 20
    assert sum(e["dur"] for e in commands) == pytest.approx(measured * 1e-3, rel=1e-3)  # microseconds
    assert any(e["pid"] != process and e["ph"] == "X" for e in trace)  # TensorFlow's own


MEMORY = """
import json
import tensorflow as tf
import tensorflow_xpu

with tf.device("/TYPE:0"):
    kept = tf.zeros([1 << 20])
    kept.numpy()
    before = tensorflow_xpu.memory_info().current
    with tensorflow_xpu.profile("FOLDER") as profile:
        a = tf.zeros([4 << 20])
        b = a + 1
        b.numpy()
        del a
        c = tf.zeros([2 << 20])
        c.numpy()
        del b
        tensorflow_xpu.synchronize()
        after = tensorflow_xpu.memory_info().current
print(json.dumps([before, after, [vars(e) for e in profile.memory], str(profile.chrome_trace),
                  [e.device for e in profile.events]]))
"""


@pytest.mark.without_isolation
@pytest.mark.host_only
@pytest.mark.parametrize(("allocator", "its_type"), [("bfc", "XPU"), ("pool", "XPU"), ("bfc", "GPU"), ("pool", "GPU")])
def test_the_memory_of_tensors_over_time(allocator, its_type, tmp_path, xpu_device):
    code = MEMORY.replace("FOLDER", str(tmp_path)).replace("TYPE", its_type.lower())
    outcome = run_code(code, environment={"TF_XPU_ALLOCATOR": allocator, "TF_XPU_DEVICE_TYPE": its_type})
    assert outcome.returncode == 0, outcome
    before, after, events, chrome, devices = outcome.json
    large = [(e["kind"], e["bytes"] >> 20) for e in events if e["bytes"] >= 1 << 20]
    assert large == [("allocate", 16), ("allocate", 16), ("free", 16), ("allocate", 8), ("free", 16)], events
    in_use = before
    for event in events:
        in_use += event["bytes"] if event["kind"] == "allocate" else -event["bytes"]
        assert event["in_use"] == in_use, event
        assert event["device"] == f"{its_type}:0"
    assert in_use == after
    if allocator == "bfc":
        tensors = [(e["op"], e["shape"]) for e in events if e["kind"] == "allocate" and e["bytes"] >= 1 << 20]
        assert tensors == [("Fill", "[4194304]"), ("AddV2", "[4194304]"), ("Fill", "[2097152]")]
    assert set(devices) == {f"{its_type}:0"}, "the plane has the device's name"
    trace = json.loads(pathlib.Path(chrome).read_text())["traceEvents"]
    process = next(e["pid"] for e in trace if e.get("args", {}).get("name") == f"/device:CUSTOM:{its_type}:0")
    counted = [e for e in trace if e["ph"] == "C"]
    assert [e["args"]["bytes"] for e in counted] == [e["in_use"] for e in events]
    assert [e["ts"] for e in counted] == [e["time_ns"] * 1e-3 for e in events]
    assert {e["pid"] for e in counted} == {process}


def plane_of(profiled):
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(pathlib.Path(profiled["xplane"]).read_bytes())
    return next(p for p in space.planes if p.name == "/device:CUSTOM:XPU:0")


def test_the_table_of_kernels_as_text_and_for_notebooks():
    import tensorflow_xpu

    event = tensorflow_xpu.ProfileEvent(
        "A <b>", "command", "XPU:0", "compute", "", "", 0, 2_000_000, 8_000_000, 4_000_000
    )
    profile = tensorflow_xpu.Profile(pathlib.Path("/nowhere"), events=[event, event])
    assert str(profile).splitlines() == [
        "  count         ms   GFLOP/s     GB/s  flop/byte  kernel",
        "      2      4.000      4.00     2.00       2.00  A <b>",
    ]
    cells = "".join(f"<td>{cell}</td>" for cell in ("2", "4.000", "4.00", "2.00", "2.00", "A &lt;b&gt;"))
    assert f"<tr>{cells}</tr></table>" in profile._repr_html_()


@pytest.mark.without_isolation
def test_no_line_has_overlaps_and_the_plane_has_the_roof(profiled):
    plane = plane_of(profiled)
    if BACKEND != "XPU_OPENCL":  # nobody measures what such a device could do
        assert {plane.stat_metadata[s.metadata_id].name for s in plane.stats} >= {
            "peak_teraflops_per_second",
            "peak_hbm_bw_gigabytes_per_second",
        }
    for line in plane.lines:
        ends = [0]
        for event in sorted(line.events, key=lambda e: (e.offset_ps, -e.duration_ps)):
            while len(ends) > 1 and ends[-1] <= event.offset_ps:
                ends.pop()
            assert len(ends) == 1 or event.offset_ps + event.duration_ps <= ends[-1], line.name
            ends.append(event.offset_ps + event.duration_ps)


@pytest.mark.of_hooks("copies")  # which sees what a stream is for
@pytest.mark.without_isolation
@pytest.mark.host_only
def test_ops_have_a_line(profiled):
    plane = plane_of(profiled)
    ops = next(line for line in plane.lines if line.name == "compute: ops")
    assert any(plane.event_metadata[e.metadata_id].name.endswith("shares") for e in ops.events)


@pytest.mark.without_isolation
@pytest.mark.host_only
def test_what_cannot_be_is_said_and_nothing_is_left_behind(tmp_path, xpu_device):
    import tensorflow as tf

    import tensorflow_xpu

    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(tensorflow_xpu.XPUError, match=re.escape(str(path))), tensorflow_xpu.profile(path):
            pytest.fail("ran")
    with tensorflow_xpu.profile(tmp_path / "outer") as outer:
        with pytest.raises(tensorflow_xpu.XPUError, match="already"), tensorflow_xpu.profile(tmp_path / "inner"):
            pytest.fail("ran")
        (tf.ones([10]) * 2).numpy()
    assert any(event.op_type == "Mul" for event in outer.events)
    with pytest.raises(ZeroDivisionError), tensorflow_xpu.profile(tmp_path / "raising") as raised:
        (tf.ones([10]) * 2).numpy()
        _ = 1 / 0
    assert any(event.op_type == "Mul" for event in raised.events)  # ended all the same


@pytest.mark.of_hooks("clusters")
@pytest.mark.without_isolation
@pytest.mark.host_only
def test_the_page_s_example_runs(tmp_path, xpu_device):
    section = (ROOT / "docs" / "front-end.md").read_text().split("\n## Profiling\n")[1].split("\n## ")[0]
    code = section.split("```python\n")[1].split("```")[0]
    outcome = run_code(code.replace("/tmp/profile", str(tmp_path)))
    assert outcome.returncode == 0, outcome
    shown = section.split("```text\n")[1].split("```")[0]
    columns = [re.sub(r" +", " ", line).strip() for line in (shown.splitlines()[0], outcome.stdout.splitlines()[0])]
    assert columns[0] == columns[1]
    kernels = [{line[50:].strip() for line in text.splitlines()[1:]} for text in (shown, outcome.stdout)]
    assert kernels[0] == kernels[1], outcome.stdout


USES = """
import json
import numpy as np
import tensorflow as tf
import tensorflow_xpu

large = np.ones([3000, 2000], np.float32)
with tf.device("/xpu:0"):
    a = tf.random.normal([1500, 1500])
    tf.matmul(a, a).numpy()
with tensorflow_xpu.profile("FOLDER") as profile:
    with tf.device("/xpu:0"):
        for _ in range(10):
            b = tf.matmul(a, a)
        tf.constant(large)  # too large to be kept until the products are there
    with tf.device("/xpu:1"):
        (tf.identity(b) + 1).numpy()
print(json.dumps([[e.kind, e.name, e.line] for e in profile.events if e.device == "XPU:0"]))
"""


@pytest.mark.of_hooks("copies")  # which sees what a stream is for
@pytest.mark.without_isolation
def test_lines_are_named_by_what_tensorflow_uses_them_for(tmp_path, xpu_device):
    """Whichever the order is in which it makes them."""
    code = USES.replace("FOLDER", str(tmp_path))
    outcome = run_code(code, environment={"TF_XPU_DEVICE_COUNT": "2"})
    assert outcome.returncode == 0, outcome
    lines = collections.defaultdict(set)
    for kind, name, line in outcome.json:
        lines[name if kind == "copy" else kind].add(line)
    assert lines["command"] == {"compute"}, lines
    assert "copies from the host" in lines["copy from the host"], lines
    assert lines["copy on the device"] == {COPIES_BETWEEN_DEVICES}, lines


@pytest.mark.without_isolation
@pytest.mark.host_only
def test_lines_have_numbers_without_the_hook_that_knows_their_uses(tmp_path, xpu_device, all_hooks):
    """All else in a profile is the same: its events, and which of them are on one line."""
    code = USES.replace("FOLDER", str(tmp_path))
    found = []
    for without in ("", "copies"):
        outcome = run_code(code, environment={"TF_XPU_DEVICE_COUNT": "2", "TF_XPU_HOOKS_WITHOUT": without})
        assert outcome.returncode == 0 and outcome.warnings == [], outcome
        found.append({(kind, name, line) for kind, name, line in outcome.json if kind in ("command", "copy")})
    named, numbered = found
    assert {line for kind, _, line in named if kind == "command"} == {"compute"}
    assert all(re.fullmatch(r"stream \d+", line) for _, _, line in numbered), numbered
    assert {event[:2] for event in numbered} == {event[:2] for event in named}
    assert len({line for kind, _, line in numbered if kind == "command"}) == 1, numbered
    from tensorflow_xpu import _core

    (row,) = (row for row in _core.internals() if row["name"] == "copies")
    assert "Profiles name the lines of a device by numbers" in row["without"]
