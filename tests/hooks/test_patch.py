"""The mechanism: all or nothing, one line for what fails, the original objects again; other libraries and versions."""

import dataclasses
import importlib
import sys
import textwrap
import types

import pytest

from tensorflow_xpu.hooks import HOOKS
from tensorflow_xpu.hooks import known as known_sources
from tensorflow_xpu.hooks.patch import CORRECTNESS, SPEED, Need, Patch, block, digest_of, one_line_each
from tests.hooks import document
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

SOURCE = '''
class Thing:
    def first(self, x, *, y=2):
        """Says so.

    Even here.
        """
        # a comment
        return x + y

    @property
    def second(
        self,
    ):
        return "second"


def third(x):
    return 3 * x
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A module of a few lines in place of TensorFlow, which may be written anew: a function that does so."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source):
        (tmp_path / "some_library.py").write_text(source)
        sys.modules.pop("some_library", None)
        importlib.invalidate_caches()
        return importlib.import_module("some_library")

    yield write
    sys.modules.pop("some_library", None)


FIRST = "some_library:Thing.first"
NEEDS = {
    "first": f"{FIRST}(self, x, *, y=)",
    "second": "some_library:Thing.second(self)",
    "third": "some_library:third(x)",
}


def make(found):
    return {
        "first": lambda self, *arguments, **named: -found.first(self, *arguments, **named),
        "third": lambda x: -found.third(x),
    }


def hook(kind=CORRECTNESS, make=make, needs=NEEDS, **options):
    return Patch(
        name="thing", kind=kind, purpose="It negates.", without="It takes longer.", needs=needs, make=make, **options
    )


def one_line(capsys, *words):
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tensorflow_xpu: the hook thing is off: ") and line.endswith("It takes longer."), line
    for word in words:
        assert word in line, line


def test_installs_and_restores(library, capsys):
    module = library(SOURCE)
    before = dict(vars(module.Thing)), module.third
    patch = hook()
    patch.install()
    assert patch.is_on
    assert (module.Thing().first(1), module.Thing().first(1, y=5), module.third(2)) == (-3, -6, -6)
    assert module.Thing.first.__doc__ == before[0]["first"].__doc__
    patch.install()  # harmless
    assert module.third(2) == -6
    assert patch.uninstall()
    assert (dict(vars(module.Thing)), module.third) == before
    assert (patch.state, capsys.readouterr().err) == ("off by uninstall()", "")


CHANGES = {
    "a name is gone": (("def third", "def fourth"), ("some_library of unknown version has no some_library:third",)),
    "a class is gone": (("class Thing", "class Thing2"), ("has no some_library:Thing.first",)),
    "another signature": (("y=2", "y=2, z=3"), (f"{FIRST} takes (self, x, *, y=, z=)", "not (self, x, *, y=)")),
    "not importable": (("class", "import nothing_of_that_name\nclass"), ("has no module some_library (",)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [CORRECTNESS, SPEED])
def test_a_library_that_changed(library, capsys, change, kind):
    replaced, words = CHANGES[change]
    try:
        module = library(SOURCE.replace(*replaced))
    except ImportError:
        module = types.SimpleNamespace(__dict__={})
    before = dict(vars(module)), dict(vars(getattr(module, "Thing", module)))
    patch = hook(kind)
    patch.install()
    one_line(capsys, *words)
    assert patch.state.startswith("off: ") and words[0] in patch.state
    assert (dict(vars(module)), dict(vars(getattr(module, "Thing", module)))) == before, "changed by halves"


def test_speed_needs_known_sources(library, capsys, monkeypatch):
    module = library(SOURCE)
    patch = hook(SPEED)
    patch.install()
    one_line(capsys, f"some_library of unknown version changed {FIRST}")
    lines = SOURCE.splitlines()
    at = {name: i for i, line in enumerate(lines) for name in ("first", "third") if f"def {name}" in line}
    at["second"] = lines.index("    @property")
    known = {Need.parse(text).path: {digest_of(block(lines, at[name])): "1.0"} for name, text in NEEDS.items()}
    monkeypatch.setattr(known_sources, "DIGESTS", known)
    monkeypatch.setitem(sys.modules["tensorflow_xpu.hooks.patch"].__dict__, "DIGESTS", known)
    patch.install()
    assert patch.is_on and module.third(2) == -6
    patch.uninstall()
    library(SOURCE.replace("        # a comment\n", "").replace("3 * x", "3 * x  # the same"))
    patch.install()
    one_line(capsys, "changed some_library:third")
    library(SOURCE.replace("# a comment", "# another comment"))
    again = hook(SPEED)
    again.install()
    assert again.is_on, "a comment is no change"


def test_a_block_is_a_definition():
    lines = SOURCE.splitlines()
    first = block(lines, 2)
    assert first.endswith("return x + y") and "# a comment" not in first and "Even here" in first
    assert block(lines, lines.index("    @property")).splitlines()[-1] == '    return "second"'
    assert block(lines, 1000) == "" and digest_of("") == "none"
    assert block(textwrap.dedent(SOURCE).splitlines(), len(lines) - 2) == "def third(x):\n    return 3 * x"


def test_a_failure_in_the_middle_undoes_all(library, capsys):
    module = library(SOURCE)
    before = dict(vars(module.Thing)), module.third

    def half(found):
        return {**make(found), "nothing": lambda: None}

    patch = hook(make=half)
    patch.install()
    one_line(capsys, "KeyError('nothing')")
    assert (dict(vars(module.Thing)), module.third) == before


def test_a_failure_later_takes_it_out_with_one_line(library, capsys):
    module = library(SOURCE)
    patch = hook()
    patch.install()
    for _ in range(3):
        with patch.contained():
            raise ZeroDivisionError("ours")
    one_line(capsys, "it failed with ZeroDivisionError('ours')")
    assert module.third(2) == 6


def test_one_line_for_one_reason(capsys):
    hooks = [dataclasses.replace(hook(needs={"x": "no_library:x"}), name=name) for name in ("a", "b", "c")]
    with one_line_each():
        for each in hooks:
            each.install()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tensorflow_xpu: the hooks a, b and c are off: ") and line.count("It takes longer.") == 1


def wrap(module, name):
    """As other libraries replace functions."""
    original = getattr(module, name)

    def wrapper(*arguments, **named):
        return original(*arguments, **named) + 100

    wrapper.__wrapped__ = original
    setattr(module, name, wrapper)
    return original, wrapper


def test_another_library_was_there_before(library, capsys):
    module = library(SOURCE)
    _, theirs = wrap(module, "third")
    patch = hook()
    patch.install()
    assert patch.is_on and module.third(2) == -106, "around theirs"
    assert patch.uninstall() and module.third is theirs
    fast = hook(SPEED, needs={"third": NEEDS["third"]}, make=lambda found: {"third": lambda x: 0})
    fast.install()
    one_line(capsys, f"{__name__} has replaced")
    assert module.third is theirs, "what it does would be left out"


def test_another_library_comes_after(library, capsys):
    module = library(SOURCE)
    patch = hook()
    patch.install()
    ours, theirs = wrap(module, "third")
    assert module.third(2) == 94
    assert not patch.uninstall(), "theirs is in the way"
    assert module.third is theirs and module.third(2) == 94
    module.third = ours
    assert module.Thing().first(1) == 3, "what can be restored is"
    assert capsys.readouterr().err == ""


def test_a_reloaded_module_has_the_original_functions(library):
    module = library(SOURCE)
    patch = hook()
    patch.install()
    importlib.reload(module)
    assert module.third(2) == 6
    assert not patch.uninstall()
    patch.install()
    assert module.third(2) == -6 and patch.uninstall()


def test_needs_are_of_their_kind(library, capsys):
    module = library(SOURCE + "\nnumber = 3\n")
    good = {"class": "some_library:Thing[class]", "number": "some_library:number[int]", "none": "sys:intern[C]"}
    patch = hook(needs=good, make=lambda found: {})
    patch.install()
    assert patch.is_on
    module.number = "3"
    other = hook(needs=good, make=lambda found: {})
    other.install()
    one_line(capsys, "some_library:number is a str in some_library of unknown version, no int")


def test_the_documents_tables_are_those_of_the_hooks():
    text = document.PATH.read_text()
    assert text == document.render(text), "python -m tests.hooks.document writes them"


def test_every_source_that_is_relied_on_is_known_for_a_version():
    paths = {need.path for hook in HOOKS if hook.kind == SPEED for need in hook.all_needs() if need.signature}
    assert paths <= set(known_sources.DIGESTS), "tools/hook_digests.py writes them"


def test_first_calls_of_several_threads(xpu_device):
    """Also in a function that is being traced, in a forked child, and while the interpreter ends."""
    code = """
        import atexit, os, threading
        import numpy as np
        import tensorflow as tf

        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        start, wrong = threading.Barrier(8), []

        def work(i):
            start.wait()
            with tf.device("/xpu:0"):
                f = tf.function(lambda a: tf.reduce_sum(a) * float(i))
                dataset = tf.data.Dataset.from_tensor_slices(x).batch(2)
                got = [float(f(tf.constant(x))) for _ in range(4)] + [float(tf.reduce_sum(b)) for b in dataset]
            if got != [66.0 * i] * 4 + [15.0, 51.0]:
                wrong.append((i, got))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert wrong == [], wrong

        @tf.function
        def traced(a):
            inner = tf.function(lambda b: b * 2)
            seen.append(float(inner(tf.constant(x[0])) [0]) if tf.executing_eagerly() else None)
            with tf.init_scope():
                seen.append(float(inner(tf.constant(x[1]))[0]))
            return inner(a)

        seen = []
        assert float(traced(tf.constant(4.0))) == 8 and seen == [None, 6.0], seen
        f = tf.function(lambda a: tf.tanh(a) * 2)
        expected = [float(f(tf.constant(1.0))) for _ in range(3)][0]
        child = os.fork()
        if child == 0:
            os._exit(0 if float(f(tf.constant(1.0))) == expected else 1)
        assert os.waitpid(child, 0)[1] == 0
        atexit.register(lambda: print("at exit", float(f(tf.constant(1.0))) == expected))
    """
    outcome = run_code(code)
    assert outcome.returncode == 0 and outcome.stdout.strip() == "at exit True", outcome
    assert outcome.warnings == []
