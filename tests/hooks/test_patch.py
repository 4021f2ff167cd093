"""The mechanism: all or nothing, one line for what fails, the original objects again; other libraries and versions."""

import ast
import dataclasses
import importlib
import sys
import textwrap
import threading
import types

import pytest
import tensorflow as tf

from tensorflow_xpu import XPUError
from tensorflow_xpu._internals import private
from tensorflow_xpu.hooks import HOOKS
from tensorflow_xpu.hooks import known as known_sources
from tensorflow_xpu.hooks import patch as patch_module
from tensorflow_xpu.hooks.features import Feature
from tensorflow_xpu.hooks.patch import CORRECTNESS, SPEED, Need, NeedsHookError, Patch, block, digest_of, one_line_each
from tensorflow_xpu.hooks.trial import NotNowError
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
    "another parameters": (("y=2", "y=2, z=3"), (f"{FIRST} takes (self, x, *, y=, z=)", "not (self, x, *, y=)")),
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


def test_a_name_that_is_added_need_not_be_there(library, capsys):
    module = library(SOURCE)
    added = {"first": f"{FIRST}[added]", "fourth": "some_library:Thing.fourth[added]"}
    patch = hook(needs=added, make=lambda found: {"first": len, "fourth": "a capsule"})
    patch.install()
    assert patch.is_on and module.Thing.first is len and module.Thing.fourth == "a capsule"
    assert patch.uninstall() and module.Thing().first(1) == 3 and not hasattr(module.Thing, "fourth")
    other = hook(needs={"fifth": "some_library:Other.fifth[added]"}, make=lambda found: {"fifth": len})
    other.install()
    one_line(capsys, "has no some_library:Other.fifth")


def on_trial(library, monkeypatch, check, expected=(-6,), **options):
    """A speed hook beside a version of the library that it was not tested with."""
    module = library(SOURCE)
    monkeypatch.setattr(patch_module, "DIGESTS", {})
    patch = hook(kind=SPEED, check=("third", check, expected), **options)
    patch.install()
    assert patch.state.startswith("waits for its self-check: some_library") and not patch.is_on
    return module, patch


def test_a_self_check_that_gives_what_it_must(library, monkeypatch, capsys):
    """The originals serve all calls until it has been, and the threads besides that it runs in."""
    seen = []

    def check():
        seen.append(module.third(2))
        other = threading.Thread(target=lambda: seen.append(module.third(3)))
        other.start()
        other.join()
        return [seen[-2]]

    module, patch = on_trial(library, monkeypatch, check)
    assert module.Thing().first(1) == 3 and seen == []  # the first call of another function does not decide
    assert module.third(4) == -12 and seen == [-6, 9]
    assert patch.is_on and patch.state.startswith("on since its self-check: ")
    assert module.Thing().first(1) == -3
    assert capsys.readouterr().err == "" and patch.uninstall()
    assert module.third(4) == 12 and not hasattr(module.third, "__wrapped__")


def raises():
    raise KeyError("x")


@pytest.mark.parametrize("how", ["something else", "fewer", "more", "raises"])
def test_a_self_check_that_does_not(library, monkeypatch, capsys, how):
    def check():
        value = module.third(2)
        if how == "raises":
            raises()
        return {"fewer": [], "more": [value, value], "something else": [-value]}[how]

    module, patch = on_trial(library, monkeypatch, check)
    assert [module.third(4) for _ in range(3)] == [12] * 3
    assert not hasattr(module.third, "__wrapped__") and patch.state.startswith("off: ")
    one_line(capsys, "some_library", "self-check")


def test_a_hook_that_gives_up_in_its_self_check(library, monkeypatch, capsys):
    def check():
        with patch.contained():
            raises()
        return [module.third(2)]

    module, patch = on_trial(library, monkeypatch, check)
    assert [module.third(4) for _ in range(2)] == [12, 12] and not patch.is_on
    one_line(capsys, "KeyError")


def test_a_self_check_that_cannot_be_now(library, monkeypatch, capsys):
    now = []

    def check():
        if not now:
            raise NotNowError
        return [module.third(2)]

    module, patch = on_trial(library, monkeypatch, check)
    assert module.third(4) == 12 and patch.state.startswith("waits ")
    now.append(True)
    assert module.third(4) == -12 and patch.is_on
    assert capsys.readouterr().err == "" and patch.uninstall()


def test_a_self_check_makes_up_for_what_is_relied_on_and_gone(library, monkeypatch, capsys):
    """No code of the hook names it: its self-check shows the same as for another source."""
    module, patch = on_trial(library, monkeypatch, lambda: [module.third(2)], relies=("some_library:fourth",))
    assert module.third(4) == -12 and patch.is_on and patch.uninstall()
    without = hook(kind=SPEED, relies=("some_library:fourth",))
    monkeypatch.setattr(Need, "require_known_source", lambda self, found: None)
    without.install()
    assert not without.is_on
    one_line(capsys, "has no some_library:fourth")


def test_a_hook_that_needs_another_one_is_off_without_a_line(library, capsys):
    """That one has said what is lost."""
    module = library(SOURCE)

    def requires():
        raise NeedsHookError("it needs other, which is off by option")

    patch = hook(requires=requires)
    patch.install()
    assert patch.state == "off since it needs other, which is off by option" and module.third(2) == 6
    assert capsys.readouterr().err == ""


def test_another_library_comes_before_the_self_check(library, monkeypatch, capsys):
    module, patch = on_trial(library, monkeypatch, lambda: [-6])
    ours = module.third
    module.third = lambda x: ours(x) + 100
    assert module.third(4) == 112 and not patch.is_on
    one_line(capsys, "another library")
    assert module.third(4) == 112


def test_no_self_check_makes_up_for_another_library(library, monkeypatch, capsys):
    module = library(SOURCE)
    monkeypatch.setattr(patch_module, "DIGESTS", {})
    module.third = lambda x: 0
    patch = hook(kind=SPEED, check=("third", lambda: [1], [1]))
    patch.install()
    assert not patch.is_on and module.third(1) == 0
    one_line(capsys, "has replaced")


def test_self_checks_of_unknown_versions(xpu_device, all_hooks):
    """All hooks are on once a program has used what they replace, and its numbers are right."""
    code = """
        import tensorflow_xpu.hooks.known as known
        for path in known.DIGESTS:
            known.DIGESTS[path] = {}
        import keras, tensorflow as tf, tensorflow_xpu
        states = lambda: [(hook.name, hook.state.partition(":")[0]) for hook in tensorflow_xpu.hooks.HOOKS
                          if hook.kind == "speed"]
        print(states())
        f = tf.function(lambda x, i: tf.tanh(x) * i)
        with tf.GradientTape() as tape:  # the first call is within it
            x = tf.constant([0.5, 1.0])
            tape.watch(x)
            y = f(x, 2.0)
        print(tape.gradient(y, x).numpy().astype(float).round(3).tolist())
        print([f(x, float(i)).numpy().astype(float).round(3).tolist() for i in range(3)])
        print([int(x) for x in tf.data.Dataset.range(3)])
        model = keras.Sequential([keras.Input([2]), keras.layers.Rescaling(3)])
        print(model.predict(tf.reshape(tf.range(6.0), (3, 2)), batch_size=2, verbose=0).tolist())
        print(states())
    """
    outcome = run_code(code)
    before, gradient, values, elements, predicted, after = map(ast.literal_eval, outcome.stdout.splitlines())
    names = ["reading", "calls", "functions", "iterators", "batches"]
    assert before == [(name, "waits for its self-check") for name in names], outcome
    assert after == [(name, "on since its self-check") for name in names], outcome
    assert gradient == [1.573, 0.84] and elements == [0, 1, 2] and predicted == [[0, 3], [6, 9], [12, 15]]
    assert values == [[0, 0], [0.462, 0.762], [0.924, 1.523]]
    assert outcome.warnings == []


SPEED_HOOKS = [hook for hook in HOOKS if hook.kind == SPEED]


@pytest.mark.parametrize("hook", SPEED_HOOKS, ids=lambda hook: hook.name)
def test_each_self_check_gives_the_same_without_the_hook(hook, xpu_device):
    """Its results are those of TensorFlow and Keras."""
    importlib.import_module("keras")
    state = hook.state
    _, program, expected = hook.check
    with tf.device("/xpu:0"):
        try:
            hook.install()  # an option may have left it out
            is_nightly = "dev" in importlib.import_module("keras").__version__  # nobody knows its sources
            assert hook.state == "on" or (is_nightly and hook.state.startswith("waits for its self-check"))
            assert list(program()) == list(expected)
            assert hook.uninstall() and list(program()) == list(expected)
        finally:
            if not state.startswith("off "):
                hook.install()
            else:
                hook.turn_off(state.removeprefix("off "))
    assert hook.state == state


def feature(**needs):
    return Feature(name="thing", purpose="It counts.", without="Count by hand.", needs=needs)


def test_a_feature_finds_its_names_once(library, monkeypatch):
    module = library(SOURCE)
    thing = feature(third="some_library:third(x)")
    with private(thing, "count()") as found:
        assert found.third(2) == 6
    monkeypatch.delattr(module, "third")
    assert thing.find().third(2) == 6 and thing.state == "on"


@pytest.mark.parametrize("needs", [{"gone": "some_library:gone(x)"}, {"third": "some_library:third(x, y)"}])
def test_a_feature_without_its_names_is_an_error_of_ours(library, needs):
    library(SOURCE)
    thing = feature(**needs)
    for _ in range(2):
        with (
            pytest.raises(XPUError, match=r"count\(\) is not possible.*some_library.*Count by hand\."),
            private(thing, "count()"),
        ):
            pass
    assert thing.state.startswith("off: ")


def test_whatever_a_feature_raises_is_an_error_of_ours(library):
    library(SOURCE + "\n\ndef fails():\n    raise KeyError('x')\n")
    thing = feature(fails="some_library:fails()")
    with pytest.raises(XPUError, match="it failed with KeyError"), private(thing, "count()") as found:
        found.fails()
    with pytest.raises(XPUError, match="it failed with KeyError"), private(thing, "count()"):
        pass


def test_the_documents_tables_are_those_of_the_hooks():
    text = document.PATH.read_text()
    assert text == document.render(text), "python -m tests.hooks.document writes them"
    assert document.NAMES.read_text() == document.names_in_python(), "python -m tests.hooks.document writes it"


def test_every_source_that_is_relied_on_is_known_for_a_version():
    paths = {need.path for hook in HOOKS if hook.kind == SPEED for need in hook.all_needs() if need.parameters}
    assert paths <= set(known_sources.DIGESTS), "tools/hook_digests.py writes them"


def test_first_calls_of_several_threads(xpu_device, all_hooks):
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
