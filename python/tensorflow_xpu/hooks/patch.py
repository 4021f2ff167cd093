"""The one mechanism by which the package changes TensorFlow and Keras: a ``Patch`` for each hook.

A patch says which private names it needs. Installing it resolves all of them, then replaces all that it replaces. If a
name is absent or has other parameters, nothing is replaced, and one line says so. A speed hook that meets a source that
it was not tested with runs its self-check first. Without a self-check it stays off. A hook that fails later is taken
out in the same way.

It runs while TensorFlow is being imported: it imports the standard library and modules of ``hooks`` alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.after_import import AfterImport
from tensorflow_xpu.hooks.known import DIGESTS
from tensorflow_xpu.hooks.trial import Trial

#: A hook without which something would be wrong: it is installed wherever its names are.
CORRECTNESS = "correctness"
#: A hook that saves time: where a source that it relies on is unknown, its self-check decides.
SPEED = "speed"

_ABSENT = object()
_NEED = re.compile(
    r"(?P<path>(?P<module>[\w.]+):(?P<names>[\w.]+))(?P<parameters>\(.*\))?(?:\[(?P<kind>[\w ]+)\])?", re.DOTALL
)
_PACKAGE = __name__.partition(".")[0]
# One thread at a time changes what is installed.
_LOCK = threading.RLock()


class UnknownError(Exception):
    """Why a hook cannot be installed here; the text is for people."""


class NeedsHookError(UnknownError):
    """A hook needs another one, which is off, and has said so if there is anything to say."""


class NewSourceError(UnknownError):
    """A function has a source that the hook was not tested with: a self-check may make up for that."""


@dataclasses.dataclass(frozen=True)
class Need:
    """A private name: ``module:Class.method(self, x, y=)``, or ``module:name[kind]`` for what is no Python function.

    A parameter has its name, and ``=`` if there is a default. A kind is the name of a type, ``class`` for any class
    that has this very name, or ``C`` for a function that is not written in Python. A name that is ``added`` need not be
    there, but what it is added to.
    """

    path: str
    module: str
    names: tuple[str, ...]
    parameters: str | None
    kind: str | None

    @classmethod
    def parse(cls, text: str) -> Need:
        """The need that a text describes."""
        match = _NEED.fullmatch(text)
        assert match is not None, text
        return cls(match["path"], match["module"], tuple(match["names"].split(".")), match["parameters"], match["kind"])

    @property
    def is_private_to(self) -> str:
        """The package that has it: ``tensorflow`` or ``keras``."""
        return self.module.partition(".")[0]

    def owner(self) -> Any:
        """The module or class that has the name."""
        try:
            found: Any = importlib.import_module(self.module)
        except ImportError as error:
            raise UnknownError(f"{version_of(self.module)} has no module {self.module} ({error})") from error
        for name in self.names[:-1]:
            found = getattr(found, name, _ABSENT)
            if found is _ABSENT:
                raise UnknownError(f"{version_of(self.module)} has no {self.path}")
        return found

    def find_any(self) -> Any:
        """The object with the name: a property itself, otherwise its value. None if there is nothing."""
        owner, name = self.owner(), self.names[-1]
        found = inspect.getattr_static(owner, name, None)
        return found if isinstance(found, property) else getattr(owner, name, None)

    def find(self) -> Any:
        """The object with the name, if it has the parameters or is of the kind."""
        found = self.find_any()
        if self.kind == "added":
            return found
        if found is None:
            raise UnknownError(f"{version_of(self.module)} has no {self.path}")
        if self.parameters is not None:
            there = parameters_of(found)
            if there != self.parameters:
                raise UnknownError(f"{self.path} takes {there} in {version_of(self.module)}, not {self.parameters}")
        elif self.kind is not None and not self._is_of_kind(found):
            raise UnknownError(f"{self.path} is a {type(found).__name__} in {version_of(self.module)}, no {self.kind}")
        return found

    def _is_of_kind(self, found: Any) -> bool:
        if self.kind == "class":
            return isinstance(found, type) and found.__name__ == self.names[-1]
        if self.kind == "C":
            return callable(found) and not isinstance(found, type) and not hasattr(found, "__code__")
        return type(found).__name__ == self.kind

    def require_known_source(self, found: Any) -> None:
        """Raises if it is a Python function, and none of those that the hooks were tested with."""
        if not hasattr(function_of(found), "__code__"):
            if self.path in DIGESTS:
                raise NewSourceError(f"{version_of(self.module)} changed {self.path} (it is no Python function)")
            return
        function = original_of(function_of(found), self.is_private_to)
        digest = digest_of(source_of(function))
        if digest not in DIGESTS.get(self.path, {}):
            raise NewSourceError(f"{version_of(self.module)} changed {self.path} (its source is {digest})")


# Hooks that have failed and the reasons, of which nothing has been said yet.
_failed: list[tuple[str, Patch]] = []


@contextlib.contextmanager
def one_line_each() -> Iterator[None]:
    """Has what happens in the block be said at its end, in one line for each reason. Blocks may be in blocks."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0 and sys.stderr is not None:  # it is None at the interpreter's end
            for reason in dict.fromkeys(reason for reason, _ in _failed):
                hooks = [hook for its, hook in _failed if its == reason]
                names = f"hook {hooks[0].name} is" if len(hooks) == 1 else f"hooks {_and(hooks)} are"
                costs = " ".join(dict.fromkeys(hook.without for hook in hooks))
                print(f"tensorflow_xpu: the {names} off: {reason}. {costs}", file=sys.stderr)
            _failed.clear()


_depth = 0


def _and(hooks: Sequence[Patch]) -> str:
    return f"{', '.join(hook.name for hook in hooks[:-1])} and {hooks[-1].name}"


def version_of(module: str) -> str:
    """``Keras 3.17.0``, for a module of it."""
    root = module.partition(".")[0]
    version = getattr(sys.modules.get(root), "__version__", None)
    version = version or getattr(sys.modules.get(f"{root}.src.version"), "__version__", "of unknown version")
    return f"{ {'tensorflow': 'TensorFlow', 'keras': 'Keras'}.get(root, root) } {version}"


def function_of(found: Any) -> Any:
    """The function behind a property; anything else is returned as it is."""
    return found.fget if isinstance(found, property) else found


def parameters_of(found: Any) -> str:
    """A function's parameters, without annotations, and with ``=`` for any default."""
    try:
        parameters = inspect.signature(function_of(found)).parameters.values()
    except (TypeError, ValueError):  # inspect has none for it
        return "()"
    texts = []
    star = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            texts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        texts.append(stars + p.name + ("" if p.default is p.empty else "="))
    return f"({', '.join(texts)})"


def original_of(function: Any, root: str) -> Any:
    """The function that the package ``root`` defines, without its own decorators and without our hooks.

    Raises:
        UnknownError: if another library has replaced it.
    """
    while True:
        namespace = getattr(function, "__globals__", None)
        if namespace is None:
            raise UnknownError(f"{function!r} is no Python function")
        origin = namespace.get("__name__", "?")
        if origin.partition(".")[0] not in (root, _PACKAGE):
            raise UnknownError(f"{origin} has replaced {function.__qualname__}")
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            return function
        function = inner


def source_of(function: Any) -> str:
    """The text of a function; empty if there is none, as in a program that was frozen without sources."""
    code = function.__code__
    lines = _lines_of(code.co_filename, function.__globals__.get("__loader__"), function.__globals__.get("__name__"))
    return block(lines, code.co_firstlineno - 1)


_read: dict[str, list[str]] = {}  # while hooks are being installed


def _lines_of(path: str, loader: Any, module: Any) -> list[str]:
    if path not in _read:
        try:
            with open(path, encoding="utf-8") as file:
                _read[path] = file.read().splitlines()
        except OSError:  # a frozen program may have the source elsewhere, or not at all
            try:
                _read[path] = (loader.get_source(module) or "").splitlines()
            except (AttributeError, ImportError, OSError):
                _read[path] = []
    return _read[path]


def block(lines: Sequence[str], first: int) -> str:
    """The definition that begins at a line with this index, with its decorators, without lines of comments."""
    if first >= len(lines):
        return ""
    indent = len(lines[first]) - len(lines[first].lstrip())
    kept = []
    defined = in_text = False
    for line in lines[first:]:
        text = line.strip()
        outside = len(line) - len(line.lstrip()) <= indent and not in_text
        if text and defined and outside and not text.startswith((")", "#")):
            break
        defined = defined or text.startswith(("def ", "async def "))
        if text and (in_text or not text.startswith("#")):
            kept.append(line.rstrip().removeprefix(" " * indent))
        in_text ^= text.count('"""') % 2 == 1
    return "\n".join(kept)


def digest_of(text: str) -> str:
    """Twelve hexadecimal digits that stand for a source; "none" for an empty one."""
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "none"


@dataclasses.dataclass
class Patch:
    """One hook: what it needs, what it replaces, and how it is doing.

    Args:
        name: for the option ``hooks_without``.
        kind: ``CORRECTNESS`` or ``SPEED``.
        purpose: what it is for, a sentence.
        without: what happens without it, a sentence.
        needs: the private names, by the names that ``make`` has for them; or several such tables, of which the first
            one that fits is taken.
        make: from a namespace with what was found, the replacements, by the same names.
        relies: further private functions whose source a speed hook relies on.
        attributes: private attributes of instances, by class. They are set in functions among the needs.
        public: the public interface that would make the hook unnecessary, for docs/internals.md.
        after: ``module:name``: nothing is done before that module has that name.
        unless: says why the hook has nothing to do in this process; empty if it has.
        check: a speed hook's self-check, which decides where a source is unknown. It has a name among the
            replacements, whose first call runs the check, then a program and the results that it must give.
        requires: raises UnknownError where something else is missing, before the hook waits for a module.
    """

    name: str
    kind: str
    purpose: str
    without: str
    needs: Mapping[str, str] | Sequence[Mapping[str, str]]
    make: Callable[[SimpleNamespace], Mapping[str, Any]]
    relies: Sequence[str] = ()
    attributes: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    public: str = ""
    after: str = ""
    unless: Callable[[], str] = lambda: ""
    check: tuple[str, Callable[[], Sequence[Any]], Sequence[Any]] | None = None
    requires: Callable[[], object] = lambda: None

    state: str = dataclasses.field(default="not started", init=False)
    _replaced: list[tuple[Any, str, Any, Any]] = dataclasses.field(default_factory=list, init=False)

    @property
    def is_on(self) -> bool:
        """True if it is installed."""
        return self.state == "on" or self.state.startswith("on since ")

    def variants(self) -> Sequence[Mapping[str, str]]:
        """The tables of needs, one of which has to fit."""
        return [self.needs] if isinstance(self.needs, Mapping) else self.needs

    def all_needs(self) -> list[Need]:
        """Every private name of the hook, each once."""
        texts = [text for variant in self.variants() for text in variant.values()]
        return [Need.parse(text) for text in dict.fromkeys([*texts, *self.relies])]

    def turn_off(self, reason: str) -> None:
        """Has it stay off, for a reason that is no failure."""
        self.state = f"off {reason}"

    def install(self) -> None:
        """Installs the hook, or, where it has to wait for a module, has that done later. Never raises."""
        reason = self.unless()
        if reason:
            return self.turn_off(reason)
        if not self._has_all():
            return None
        if not self.after:
            return self._install()
        module, _, last_name = self.after.partition(":")
        self.state = f"waits for {module}"
        return AfterImport.install(module, lambda _: self._install(), last_name)

    def _has_all(self) -> bool:
        with _LOCK, self.contained():
            self.requires()
            return True
        return False

    def _install(self) -> None:
        with _LOCK, self.contained():
            if self.is_on:
                return
            found, unknown = self._resolve()
            replacements = self.make(SimpleNamespace(**{name: value for name, (_, value) in found.items()}))
            if unknown:
                replacements = self._on_trial(unknown, found, replacements)
            for name, replacement in replacements.items():
                self._replace(found[name][0], replacement)
            self.state = f"waits for its self-check: {unknown}" if unknown else "on"

    def _resolve(self) -> tuple[dict[str, tuple[Need, Any]], str]:
        """The objects of the first table of needs that fits, and what of their sources is unknown; "" if nothing is."""
        reasons = []
        for variant in self.variants():
            unknown = ""
            try:
                found = {name: (need, need.find()) for name, need in _parsed(variant)}
                if self.kind == SPEED:
                    unknown = self._unknown_source(found.values())
            except UnknownError as error:
                reasons.append(str(error))
            else:
                return found, unknown
        raise UnknownError(reasons[0])

    def _unknown_source(self, found: Iterable[tuple[Need, Any]]) -> str:
        """The first function with an unknown source, or that is relied on and gone; "" if there is none.

        Raises:
            UnknownError: for the same, if the hook has no self-check; if another library has replaced one.
        """

        def gone(need: Need) -> str:
            try:
                need.find()
            except UnknownError as error:
                return str(error)
            return ""

        def changed(need: Need, value: Any) -> str:
            try:
                need.require_known_source(value)
            except NewSourceError as error:
                return str(error)
            return ""

        reasons = [changed(need, value) for need, value in found]
        for need in map(Need.parse, self.relies):
            reasons.append(gone(need) or changed(need, need.find()))
        unknown = next(filter(None, reasons), "")
        if unknown and self.check is None:
            raise UnknownError(unknown)
        return unknown

    def _on_trial(
        self, unknown: str, found: Mapping[str, tuple[Need, Any]], replacements: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The functions that stand in the replacements' place until the self-check has been."""
        assert self.check is not None, "_resolve() has seen that there is one"
        for need in (found[name][0] for name in replacements):
            if need.names[-1] not in vars(need.owner()):  # it has moved to a base class
                raise UnknownError(f"{version_of(need.module)} has no {need.path} of its own")

        def decide(wrong: str) -> bool:
            with _LOCK, self.contained():
                if not self.state.startswith("waits "):  # it has failed meanwhile, or somebody has taken it out
                    return False
                if wrong:
                    raise UnknownError(f"{unknown}, and {wrong}")
                if not self.uninstall():
                    raise UnknownError(f"another library has replaced what {self.name} replaces, before its self-check")
                for name, replacement in replacements.items():
                    self._replace(found[name][0], replacement)
                self.state = f"on since its self-check: {unknown}"
            return self.is_on

        at, program, expected = self.check
        originals = {name: found[name][1] for name in replacements}
        return Trial(program, expected, originals, replacements, at, decide).functions()

    def _replace(self, need: Need, replacement: Any) -> None:
        owner, name = need.owner(), need.names[-1]
        before = vars(owner).get(name, _ABSENT)
        if callable(replacement) and need.kind != "added":
            original = getattr(owner, name)
            for attribute in ("__doc__", "__module__", "__name__", "__qualname__"):
                setattr(replacement, attribute, getattr(original, attribute))
            replacement.__wrapped__ = original
        setattr(owner, name, replacement)
        self._replaced.append((owner, name, before, replacement))

    @contextlib.contextmanager
    def contained(self) -> Iterator[None]:
        """Around what uses private names: whatever it raises takes the hook out, with one line, and goes no further.

        A private function of an unknown version may raise anything, so nothing less than every exception is caught.
        """
        try:
            yield
        except NeedsHookError as error:
            self.uninstall()
            self.turn_off(f"since {error}")
        except UnknownError as error:
            self._give_up(f"{error}")
        except Exception as error:
            self._give_up(f"it failed with {error!r}")
        finally:
            _read.clear()

    def _give_up(self, reason: str) -> None:
        is_news = not self.state.startswith("off: ")
        self.uninstall()
        self.state = f"off: {reason}"
        if is_news:
            with one_line_each():
                _failed.append((reason, self))

    def uninstall(self) -> bool:
        """Restores the original objects. False if another library has replaced one since, which then stays."""
        restored = True
        with _LOCK:
            for owner, name, before, replacement in reversed(self._replaced):
                if vars(owner).get(name, _ABSENT) is not replacement:
                    restored = False
                elif before is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
            self._replaced.clear()
            self.turn_off("by uninstall()")
        return restored


def _parsed(variant: Mapping[str, str]) -> list[tuple[str, Need]]:
    return [(name, Need.parse(text)) for name, text in variant.items()]
