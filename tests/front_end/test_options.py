"""Options: calls, environment, configuration file, default, in this order; what makes no sense; what comes too late."""

import json
import re

import pytest

import tensorflow_xpu
from tensorflow_xpu import _options
from tests.support.installed import ROOT
from tests.support.processes import run, run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.usefixtures("no_options")]

NO_SUBDEVICE = "subdevice='XPU_BANANA' makes no sense: expected XPU_HOST, XPU_REFERENCE, XPU_OPENCL or XPU_CUDA"

# A program that does not know of the package has this.
SEEN = """
import json
import tensorflow as tf
from tensorflow.python.client import device_lib
xpus = tf.config.list_physical_devices("XPU")
backends = [tf.config.experimental.get_device_details(d)["device_name"] for d in xpus]
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "config"


def command(*arguments, **environment):
    return run("-m", "tensorflow_xpu", *arguments, environment=environment)


def test_the_file_holds_in_programs_that_know_nothing_of_it(file):
    file.write_text("# mine\n\n  TF_XPU_SUBDEVICE = XPU_REFERENCE\t\nTF_XPU_DEVICE_COUNT=2\nTF_XPU_THREADS=1\n")
    code = f"{SEEN}\nimport os; print(json.dumps([backends, 'TF_XPU_DEVICE_COUNT' in os.environ]))"
    outcome = run_code(code, environment={"TF_XPU_CONFIG": str(file)})
    assert outcome.json == [["XPU_REFERENCE"] * 2, False], outcome
    assert outcome.warnings == []


def test_environment_goes_before_file_and_call_before_both(file):
    file.write_text("TF_XPU_SUBDEVICE=XPU_REFERENCE\nTF_XPU_DEVICE_COUNT=3\nTF_XPU_MEMORY_LIMIT=64MiB\nTF_XPU_ISA=\n")
    code = """
        import json, tensorflow_xpu
        tensorflow_xpu.configure(devices=2, threads="default")
        import tensorflow as tf
        devices = tensorflow_xpu.list_physical_devices("XPU", enabled=True)
        seen = [[d.subdevice_type, d.memory_total] for d in devices]
        settings = {s.parameter: [s.value, s.source] for s in tensorflow_xpu.show_config() if s.source != "default"}
        print(json.dumps([seen, settings, tensorflow_xpu.get_subdevice_mapping()]))
    """
    environment = {"TF_XPU_CONFIG": str(file), "TF_XPU_SUBDEVICE": "XPU_HOST", "TF_XPU_DEVICE_COUNT": "4"}
    seen, settings, mapping = run_code(code, environment=environment).json
    assert seen == [["XPU_HOST", 64 << 20]] * 2
    assert settings == {
        "subdevice": ["XPU_HOST", "environment"],
        "devices": ["2", "call"],
        "memory_limit": ["64MiB", "file"],
        "threads": ["its share of the processors", "call"],
        "isa": ["the best there is", "file"],
    }
    assert mapping == {"XPU": "XPU_HOST"}
    # An empty variable asks for the default, and goes before the file, too.
    outcome = run_code(f"{SEEN}\nprint(json.dumps(backends))", environment={**environment, "TF_XPU_DEVICE_COUNT": ""})
    assert outcome.json == ["XPU_HOST"], outcome


def test_the_file_may_choose_the_type_which_the_hooks_then_know(file):
    file.write_text("TF_XPU_DEVICE_TYPE=GPU\n")
    code = """
        import json, sys
        import tensorflow as tf, tensorflow_xpu
        seen = [d.name for d in tf.config.list_physical_devices("GPU")]
        known = tensorflow_xpu.hooks.runtime.Devices.type
        print(json.dumps([seen, tensorflow_xpu.get_subdevice_mapping(), known]))
    """
    outcome = run_code(code, environment={"TF_XPU_CONFIG": str(file)})
    assert outcome.json == [["/physical_device:GPU:0"], {"GPU": "XPU_HOST"}, "GPU"], outcome


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TF_XPU_DEVICE_COUNT=2\ndevices=3\n", ':2 has "devices=3", expected TF_XPU_...=value'),
        ("TF_XPU_DEVICE_COUNT\n", ':1 has "TF_XPU_DEVICE_COUNT", expected'),
        ("TF_XPU_DEVICE_COUNT=2\nTF_XPU_DEVICE_COUNT=3\n", ':2 has "TF_XPU_DEVICE_COUNT=3", expected'),
        ("TF_XPU_DEVICE_COUNT=2\nTF_XPU_CONFIG=/etc\n", ':2 has "TF_XPU_CONFIG=/etc", expected'),
        ("\x7fELF\x01\x02", ":1 has"),
        (None, " cannot be read"),
    ],
)
def test_a_malformed_file_is_ignored_as_a_whole_with_a_line(file, text, words, monkeypatch):
    if text is not None:
        file.write_text(text)
    outcome = run_code(f"{SEEN}\nprint(json.dumps(backends))", environment={"TF_XPU_CONFIG": str(file)})
    assert outcome.json == ["XPU_HOST"], outcome
    (line,) = outcome.warnings
    assert f"the configuration file is ignored: {file}{words}" in line and "Fix: " in line
    monkeypatch.setenv("TF_XPU_CONFIG", str(file))
    with pytest.raises(tensorflow_xpu.XPUError, match=re.escape(words.strip().replace(" cannot", "cannot"))):
        tensorflow_xpu._settings.read_file()


def test_a_bad_value_in_the_file_is_named_with_the_file(file):
    file.write_text("TF_XPU_DEVICE_COUNT=two\n")
    outcome = run_code(f"{SEEN}\nprint(json.dumps(backends))", environment={"TF_XPU_CONFIG": str(file)})
    assert outcome.json == ["XPU_HOST"], outcome
    assert [f"TF_XPU_DEVICE_COUNT=two (in {file}) is ignored" in line for line in outcome.warnings] == [True], outcome
    file.write_text("TF_XPU_DISABLE=1\n")
    outcome = run_code(f"{SEEN}\nprint(json.dumps(backends))", environment={"TF_XPU_CONFIG": str(file)})
    assert outcome.json == [], outcome
    assert f"TF_XPU_DISABLE=1 is set in {file}" in outcome.warnings[0]
    assert "config --unset TF_XPU_DISABLE" in outcome.warnings[0]


def test_where_the_file_is(tmp_path, monkeypatch):
    """The XDG Base Directory Specification; the plugin and the package agree."""
    homes = {name: tmp_path / name for name in ("home", "config", "first", "second")}

    def found(**environment):
        variables = {"HOME": str(homes["home"]), "XDG_CONFIG_HOME": "", **environment}
        with monkeypatch.context() as patch:
            for name, value in {**variables, "TF_XPU_CONFIG": ""}.items():
                patch.setenv(name, value)
            here, mine = tensorflow_xpu._settings.file_in_use(), tensorflow_xpu._settings.user_file()
        home = environment.get("XDG_CONFIG_HOME", "relative")
        folder = homes["home"] / ".config" if home == "relative" else homes["config"]
        assert mine == folder / "tensorflow_xpu" / "config"
        code = f"import json, os; os.environ.update({variables}); import tensorflow, tensorflow_xpu as x\n"
        outcome = run_code(code + "print(json.dumps(x._devices.loader_report()))", environment={"TF_XPU_CONFIG": ""})
        assert outcome.json["settings_file"] == str(here or ""), outcome
        assert list(outcome.json["settings"].values()) == ([here.parent.parent.name] if here else [])
        return here and here.parent.parent.name

    def write(name):
        path = (homes[name] / ".config" if name == "home" else homes[name]) / "tensorflow_xpu" / "config"
        path.parent.mkdir(parents=True)
        path.write_text(f"TF_XPU_NOTHING={path.parent.parent.name}\n")

    dirs = f"{homes['first']}:relative:{homes['second']}"
    write("second")
    assert found(XDG_CONFIG_DIRS=dirs) == "second"
    write("home")
    assert found(XDG_CONFIG_DIRS=dirs, XDG_CONFIG_HOME="relative") == ".config"
    assert found(XDG_CONFIG_DIRS="", XDG_CONFIG_HOME=str(homes["config"])) is None


def test_use_writes_the_file(file):
    outcome = command("use", "XPU_REFERENCE", TF_XPU_CONFIG=str(file), TF_XPU_SUBDEVICE="")
    assert outcome.returncode == 0, outcome
    assert f"XPU_REFERENCE is used from now on ({file})" in outcome.stdout
    assert "goes before the file" in outcome.stderr
    # Lines of others stay.
    file.write_text(f"# note\n{file.read_text()}TF_XPU_FUTURE = 1\n")
    outcome = command("use", "XPU_HOST", "--type", "GPU", "--json", TF_XPU_CONFIG=str(file))
    assert outcome.json["changed"] == {"TF_XPU_SUBDEVICE": "XPU_HOST", "TF_XPU_DEVICE_TYPE": "GPU"}, outcome
    lines = file.read_text().splitlines()
    assert lines[0] == "# note"
    assert lines[-3:] == ["TF_XPU_SUBDEVICE=XPU_HOST", "TF_XPU_FUTURE = 1", "TF_XPU_DEVICE_TYPE=GPU"]
    command("use", "default", TF_XPU_CONFIG=str(file))
    command("config", "--unset", "device_type", "TF_XPU_FUTURE", TF_XPU_CONFIG=str(file))
    assert [line for line in file.read_text().splitlines() if not line.startswith("#")] == []
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name], "nothing else is left there"


def test_config_shows_and_changes(file, tmp_path):
    environment = {"TF_XPU_CONFIG": str(file)}
    outcome = command("config", "--set", "devices=2", "TF_XPU_MEMORY_LIMIT=1GiB", **environment)
    assert outcome.returncode == 0, outcome
    outcome = command("config", "--json", TF_XPU_THREADS="1", **environment)
    options = {option["parameter"]: option for option in json.loads(outcome.stdout)["options"]}
    assert set(options) == set(_options.BY_PARAMETER)
    found = {name: (o["value"], o["source"], o["origin"]) for name, o in options.items() if o["source"] != "default"}
    assert found == {
        "devices": ("2", "file", str(file)),
        "memory_limit": ("1GiB", "file", str(file)),
        "threads": ("1", "environment", ""),
    }
    outcome = command("config", **environment)
    assert re.search(rf"^devices +2 +{file} +TF_XPU_DEVICE_COUNT$", outcome.stdout, re.MULTILINE), outcome
    assert command("config", "--path", **environment).stdout.strip() == str(file)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("use", "XPU_BANANA"),
            NO_SUBDEVICE,
        ),
        (("use", "XPU_HOST", "--type", "TPU"), "device_type='TPU' makes no sense: expected XPU or GPU"),
        (("config", "--set", "devices=2", "threads=0"), "threads='0' makes no sense: expected 1 to 1024"),
        (("config", "--set", "devices"), "'devices' is not NAME=VALUE"),
        (("config", "--unset", "colour"), "there is no option 'colour': there are disable (TF_XPU_DISABLE)"),
    ],
)
def test_commands_that_cannot_be_carried_out(file, arguments, words):
    outcome = command(*arguments, TF_XPU_CONFIG=str(file))
    assert outcome.returncode == 1, outcome
    assert words in outcome.stderr
    assert not file.exists(), "nothing is half written"


def test_files_that_cannot_be_written(file, tmp_path):
    file.write_text("nonsense\n")
    outcome = command("use", "XPU_HOST", TF_XPU_CONFIG=str(file))
    assert outcome.returncode == 1 and f'{file}:1 has "nonsense"' in outcome.stderr, outcome
    assert file.read_text() == "nonsense\n"
    outcome = command("use", "XPU_HOST", "--json", TF_XPU_CONFIG=str(file / "config"))
    assert outcome.returncode == 1 and "cannot be written (File exists)" in outcome.json["error"], outcome
    outcome = command("use", "XPU_HOST", TF_XPU_CONFIG="none")
    assert outcome.returncode == 1 and "TF_XPU_CONFIG=none is set" in outcome.stderr, outcome
    assert command("use").returncode == 2
    assert command("config", "--set", "devices=2", "--path").returncode == 2


def test_calls_after_the_import_and_before_the_devices():
    code = """
        import json
        import tensorflow as tf, tensorflow_xpu
        first = [len(tf.config.list_physical_devices("XPU"))]
        tensorflow_xpu.set_subdevice_mapping("XPU_REFERENCE")
        tensorflow_xpu.configure(devices=2, memory_limit="64MiB", isolate_memory=True)
        errors = []
        def refused(f):
            before = repr(tensorflow_xpu.show_config())
            try:
                f()
            except tensorflow_xpu.XPUError as error:
                errors.append(str(error))
            assert repr(tensorflow_xpu.show_config()) == before, "half applied"
        refused(lambda: tensorflow_xpu.configure(devices=3, fusion=False))
        refused(lambda: tensorflow_xpu.set_subdevice_mapping({"GPU": "XPU_HOST"}))
        devices = tensorflow_xpu.list_physical_devices("XPU", enabled=True)
        devices = [[d.subdevice_type, d.memory_total] for d in devices]
        with tf.device("/xpu:1"):
            x = tf.linalg.matmul(tf.ones([4, 4]), tf.ones([4, 4]))
        assert x.device.endswith("XPU:1") and float(x[0, 0]) == 4
        refused(lambda: tensorflow_xpu.set_subdevice_mapping("XPU_HOST"))
        tensorflow_xpu.configure(devices=2)  # as it is: never too late
        print(json.dumps([first, devices, tensorflow_xpu.get_subdevice_mapping(), errors]))
    """
    outcome = run_code(code, environment={"TF_XPU_FUSION": "1"})
    first, devices, mapping, errors = outcome.json
    assert first == [1]
    assert devices == [["XPU_REFERENCE", 64 << 20]] * 2
    assert mapping == {"XPU": "XPU_REFERENCE"}
    assert "configure(devices=3, fusion=False) came after TensorFlow was imported" in errors[0]
    assert "TF_XPU_FUSION is read: do so before `import tensorflow`" in errors[0]
    assert "which is when TF_XPU_DEVICE_TYPE is read" in errors[1]
    assert "set_subdevice_mapping('XPU_HOST') came after TensorFlow had created its devices: do so before" in errors[2]


def test_what_the_core_refuses_is_not_applied(tmp_path):
    """A session of TensorFlow 1 makes devices unknown to the eager context; the file's values are what they were."""
    file = tmp_path / "config"
    file.write_text("TF_XPU_MEMORY_LIMIT=64MiB\n")
    code = """
        import json, os, subprocess
        import tensorflow as tf, tensorflow_xpu
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            session.run(tf.constant(1.0) + 1)
        try:
            tensorflow_xpu.configure(memory_limit="32MiB")
        except tensorflow_xpu.XPUError as error:
            said = str(error)
        (setting,) = [s for s in tensorflow_xpu.show_config() if s.parameter == "memory_limit"]
        total = tensorflow_xpu.list_physical_devices("XPU")[0].memory_total
        inherited = subprocess.run(["printenv", "TF_XPU_MEMORY_LIMIT"], capture_output=True, text=True).stdout
        unseen = "TF_XPU_MEMORY_LIMIT" not in os.environ
        print(json.dumps([said, setting.value, setting.source, total, unseen, inherited]))
    """
    said, *rest = run_code(code, environment={"TF_XPU_CONFIG": str(file)}).json
    assert "is not possible: TensorFlow has made its devices" in said
    assert rest == ["64MiB", "file", 64 << 20, True, "64MiB\n"]


def test_visible_devices_of_other_types_stay():
    code = """
        import json
        import tensorflow as tf, tensorflow_xpu
        tf.config.set_visible_devices([], "CPU")
        tensorflow_xpu.configure(devices=2)
        print(json.dumps([d.name for d in tf.config.get_visible_devices()]))
    """
    assert run_code(code).json == ["/physical_device:XPU:0", "/physical_device:XPU:1"]


def test_both_complete_backends_have_the_same_kernels():
    """So that a backend may be chosen after kernels were registered for another."""
    code = """
        import hashlib, json
        import tensorflow as tf
        from tensorflow.python.framework import kernels
        found = sorted(str(k) for k in kernels.get_all_registered_kernels().kernel if k.device_type == "XPU")
        print(json.dumps([len(found), hashlib.sha256("".join(found).encode()).hexdigest()]))
    """
    seen = [run_code(code, environment={"TF_XPU_SUBDEVICE": name}).json for name in ("XPU_HOST", "XPU_REFERENCE")]
    assert seen[0] == seen[1]
    assert seen[0][0] > 5000


GOOD = {
    "devices": [1, 64, "7"],
    "memory_limit": [1 << 20, "1MiB", "1048576", "25%", "100%", "2TiB", "3GB", "default"],
    "threads": [1, 1024],
    "subdevice": ["XPU_HOST", "XPU_REFERENCE"],
    "device_type": ["XPU", "GPU"],
    "allocator": ["bfc", "pool"],
    "isolate_memory": [True, False, 0, "1"],
    "large_pages": [True, "0"],
    "fusion": [False],
    "fusion_without": ["Rematerialize", "FuseEpilogues,FuseElementwise"],
    "direct_calls": [True, "0"],
    "hooks": [True, "0"],
    "hooks_without": ["batches", "xla,calls", "jit,batches"],
    "dump_fusion": ["/tmp"],
    "isa": ["baseline"],
    "winograd": [True, False, "0", "1", 1],
    "opencl_device": ["pocl", "Intel(R) Arc", 0, "2"],
    "fault": [
        "alloc:fail@3",
        "internal=jit:lie@2",
        "copy:delay=20ms",
        "xpu:1/command:fail@10-12",
        "command=MatMul:result=zeros,alloc:fail@2-",
        "command:workspace=3KiB",
    ],
    "disable": [False],
}
BAD = {
    "devices": [0, 65, -1, "two", 2.0, True, " 2", "2.5", ""],
    "memory_limit": [0, 1000, "1", "1mib", "101%", "0%", "-5GB", "1048575", 1.5, "99999999TiB", "GiB", True],
    "threads": [0, 1025],
    "subdevice": ["XPU_BANANA", "xpu_host", 3, None.__class__],
    "device_type": ["TPU", "gpu"],
    "allocator": ["best"],
    "isolate_memory": [2, "yes", "true"],
    "large_pages": [2],
    "fusion": ["on"],
    "fusion_without": ["", "Nothing", "Rematerialize, FuseEpilogues", 3],
    "direct_calls": ["off", 2],
    "hooks": ["off", 2],
    "hooks_without": ["", "batch", "batches, calls", "kernels", 3],
    "dump_fusion": ["/dev/null", "/dev/null/folder", 3],
    "isa": ["sse"],
    "winograd": ["fast", 2],
    "opencl_device": ["", "a\nb", -1, 0.5, True],
    "fault": [
        "alloc",
        "alloc:fail@0",
        "internal=jit:lie@0",
        "alloc:fail@3-2",
        "copy:result=zeros",
        "command=Nothing:fail",
        "copy=MatMul:fail",
        "command:workspace=0B",
        "command:workspace=3B@2",
        "command:result=right",
        "alloc:fail,",
        "",
    ],
    "disable": ["no"],
}


def test_values_are_refused_as_the_core_refuses_them():
    """The core's answer to each text is the truth, but for DISABLE, folders, and what backends and hooks read."""
    assert set(GOOD) == set(BAD) == set(_options.BY_PARAMETER)
    texts = []
    for name, values in GOOD.items():
        texts += [(_options.named(name).variable, _options.named(name).text(value), True) for value in values]
    for name, values in BAD.items():
        for value in values:
            with pytest.raises(tensorflow_xpu.XPUError, match=rf"^{name}=.* makes no sense: expected "):
                _options.named(name).text(value)
        texts += [(_options.named(name).variable, value, False) for value in values if isinstance(value, str) and value]
    elsewhere = ("TF_XPU_DISABLE", "TF_XPU_ISA", "TF_XPU_OPENCL_DEVICE", "TF_XPU_HOOKS", "TF_XPU_HOOKS_WITHOUT")
    judged = [text for text in texts if text[0] not in elsewhere]
    code = f"""
        import json, os
        import tensorflow as tf, tensorflow_xpu
        from tensorflow_xpu import _core, _native
        core, seen = _core.loader_report()["core"], []
        for name, text, _ in {judged!r}:
            os.environ[name] = text
            seen.append(name + "=" + text + " is ignored" not in _native.ask(core, "XpuCore_Reconfigure"))
            del os.environ[name]
        print(json.dumps(seen))
    """
    outcome = run_code(code)
    assert len(judged) > 60
    assert [text[:2] for text, taken in zip(judged, outcome.json) if text[2] != taken] == [], outcome


# Values of all options that make no sense, with what a line has to say of each; and those that do and change nothing.
SENSELESS = {
    "TF_XPU_DEVICE_TYPE": ("TPU", "expected XPU or GPU"),
    "TF_XPU_SUBDEVICE": ("XPU_BANANA", "expected XPU_HOST or"),
    "TF_XPU_DEVICE_COUNT": ("two", "expected a whole number from 1 to 64"),
    "TF_XPU_MEMORY_LIMIT": ("lots", "expected bytes, or a number with"),
    "TF_XPU_ALLOCATOR": ("best", "expected bfc or pool"),
    "TF_XPU_LARGE_PAGES": ("2", "expected 1 or 0"),
    "TF_XPU_THREADS": ("0", "expected a whole number from 1 to 1024"),
    "TF_XPU_ISA": ("sse", "expected baseline, avx2, avx512, avx512_vnni or amx"),
    "TF_XPU_WINOGRAD": ("yes", "expected 1 or 0"),
    "TF_XPU_FUSION": ("on", "expected 1 or 0"),
    "TF_XPU_FUSION_WITHOUT": ("Everything", "expected of these, with commas between: "),
    "TF_XPU_DIRECT_CALLS": ("no", "expected 1 or 0"),
    "TF_XPU_HOOKS": ("no", "expected 1 or 0"),
    "TF_XPU_HOOKS_WITHOUT": ("all", "expected of these, with commas between: ops, "),
    "TF_XPU_DUMP_FUSION": ("/dev/null/folder", "Not a directory"),
    "TF_XPU_FAULT": ("alloc:explode", "expected "),
    "TF_XPU_ISOLATE_MEMORY": ("maybe", "expected 0 or 1"),
    "TF_XPU_CONFIG": ("/nowhere/config", "the configuration file is ignored: /nowhere/config cannot be read"),
}
WITHOUT_EFFECT = {
    "TF_XPU_MEMORY_LIMIT": ("9TiB", "for 2 devices"),
    "TF_XPU_DEVICE_COUNT": ("2", None),
    "TF_XPU_FUSION": ("0", None),
    "TF_XPU_FUSION_WITHOUT": ("Rematerialize", "has no effect with TF_XPU_FUSION=0"),
    "TF_XPU_DUMP_FUSION": ("/tmp/none", "has no effect with TF_XPU_FUSION=0"),
    "TF_XPU_FAULT": ("xpu:7/command:fail", "the last device is xpu:1"),
    "TF_XPU_DEVICE_CUONT": ("2", "did you mean TF_XPU_DEVICE_COUNT?"),
    "TF_XPU_COLOUR_OF_THE_SKY": ("blue", "there is no such option"),
}
USE_IT = """
import tensorflow as tf, tensorflow_xpu
assert tf.reduce_sum(tf.ones([3])).numpy() == 3
tf.nn.conv2d(tf.ones([8, 32, 32, 32]), tf.ones([3, 3, 32, 32]), 1, "SAME").numpy()
"""


@pytest.mark.parametrize("values", [SENSELESS, WITHOUT_EFFECT], ids=["senseless", "without effect"])
def test_no_value_is_ignored_in_silence(values):
    outcome = run_code(USE_IT, environment={name: value for name, (value, _) in values.items()})
    assert outcome.returncode == 0, outcome
    left = list(outcome.warnings)
    for name, (value, words) in values.items():
        lines = [
            line for line in left if words is not None and words in line and (name in line or name[-6:] == "CONFIG")
        ]
        assert len(lines) == (words is not None), (name, value, outcome)
        left = [line for line in left if line not in lines]
    assert left == [], outcome


def test_options_that_make_no_sense_are_all_tried():
    elsewhere = {"TF_XPU_DISABLE", "TF_XPU_OPENCL_DEVICE"}  # test_loading.py, test_opencl.py
    assert set(SENSELESS) == set(_options.BY_VARIABLE) - elsewhere | {"TF_XPU_CONFIG"}


def test_a_name_in_the_file_that_is_no_option(file):
    file.write_text("TF_XPU_THREAD=1\n")
    outcome = run_code(USE_IT, environment={"TF_XPU_CONFIG": str(file)})
    (line,) = outcome.warnings
    assert f"TF_XPU_THREAD=1 (in {file}) has no effect" in line, line
    assert "did you mean TF_XPU_THREADS?" in line, line


def test_the_folder_for_clusters_is_made(tmp_path):
    folder = tmp_path / "not" / "there"
    code = """
        import tensorflow as tf
        name = "long" * 80
        body = lambda x: tf.reduce_sum(tf.tanh(x * 3.0) * 2.0 + 1.0)
        body.__name__ = name
        f = tf.function(body)
        f(tf.ones([3])), f(tf.ones([3]))
    """
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(folder)})
    assert outcome.warnings == [], outcome
    assert [path.stat().st_size > 100 for path in folder.iterdir()].count(True) > 0


def test_every_option_is_read_by_cpp_and_is_in_the_table():
    """The core makes its list of the table; what reads an option names it."""
    names = set()
    for path in (ROOT / "tensorflow_plugin").rglob("*.cc"):
        if "tests" not in path.parts and not path.stem.endswith("_test"):
            names |= set(re.findall(r'"(TF_XPU_[A-Z_]+)"', path.read_text()))
    assert names - {"TF_XPU_CONFIG"} == set(_options.BY_VARIABLE)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"TPU": "XPU_HOST"}, "device_type='TPU' makes no sense: expected XPU or GPU"),
        ({"XPU": "XPU_HOST", "GPU": "XPU_HOST"}, "has 2 device types, but all devices have the same"),
        ({}, "has 0 device types"),
        (
            {"XPU": "XPU_BANANA"},
            NO_SUBDEVICE,
        ),
        ("XPU_BANANA", NO_SUBDEVICE),
        (3, "3 is no subdevice mapping"),
    ],
)
def test_mappings_to_what_there_is_not(mapping, message):
    with pytest.raises(tensorflow_xpu.XPUError, match=message):
        tensorflow_xpu.set_subdevice_mapping(mapping)


def test_the_package_imports_no_tensorflow_and_children_inherit():
    code = """
        import json, subprocess, sys, tensorflow_xpu
        assert "tensorflow" not in sys.modules, "importing the package imports TensorFlow"
        tensorflow_xpu.set_subdevice_mapping({"XPU": "XPU_REFERENCE"})
        child = "import tensorflow_xpu as x; print([s.source for s in x.show_config() if s.value == 'XPU_REFERENCE'])"
        print(json.dumps(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.strip()))
    """
    assert run_code(code).json == "['environment']"


def test_a_plugin_that_is_not_in_use_takes_no_options():
    code = """
        import json
        import tensorflow as tf, tensorflow_xpu
        try:
            tensorflow_xpu.configure(devices=2)
        except tensorflow_xpu.XPUError as error:
            print(json.dumps(str(error)))
    """
    outcome = run_code(code, environment={"TF_XPU_DISABLE": "1"})
    assert "configure(devices=2) has no effect, since the plugin offers no devices: TF_XPU_DISABLE=1" in outcome.json


def test_the_table_for_people(monkeypatch):
    monkeypatch.setenv("TF_XPU_THREADS", "<many>")
    config = tensorflow_xpu.show_config()
    assert re.search(
        r"^threads +its share of the processors \('<many>' makes no sense\) +environment", repr(config), re.MULTILINE
    )
    assert "&lt;many&gt;" in config._repr_html_() and "<many>" not in config._repr_html_()
