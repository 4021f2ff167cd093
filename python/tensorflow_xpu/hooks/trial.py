"""The self-check of a speed hook that meets sources which nobody has tested it with.

Until it is decided, functions in the place of the replacements do what the originals do. The first call of one of them,
which the hook names, runs a small program twice. It runs with the originals, then with the replacements, which only
this thread has. If both give the same, the hook is on from then on; otherwise it is off, and one line says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class NotNowError(Exception):
    """The program cannot run here, such as in a graph: a later call decides."""


class Trial:
    """One self-check.

    Args:
        program: gives the results that must be the same; it raises ``NotNowError`` where it cannot run.
        originals: what TensorFlow or Keras has, by name.
        replacements: what the hook puts in its place, by name.
        at: the name whose first call decides.
        decide: is told the outcome, "" if both results are the same, else what is wrong; says if the hook is on then.
    """

    def __init__(
        self,
        program: Callable[[], Sequence[Any]],
        originals: Mapping[str, Callable[..., Any]],
        replacements: Mapping[str, Callable[..., Any]],
        at: str,
        decide: Callable[[str], bool],
    ) -> None:
        self._program, self._decide, self._at = program, decide, at
        self._originals, self._replacements = originals, replacements
        self._lock = threading.Lock()
        self._thread = 0  # that runs the program with the replacements
        self._is_decided = self._is_on = False

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that are in the place of the replacements meanwhile, by name."""
        return {name: self._function(name) for name in self._replacements}

    def _function(self, name: str) -> Callable[..., Any]:
        original, replacement, decides = self._originals[name], self._replacements[name], name == self._at

        def on_trial(*arguments: Any, **named: Any) -> Any:
            if decides and not self._is_decided:
                self._try()
            new = self._is_on if self._is_decided else self._thread == threading.get_ident()
            return (replacement if new else original)(*arguments, **named)

        return on_trial

    def _try(self) -> None:
        if not self._lock.acquire(blocking=False):  # this thread is in the program, or another one is
            return
        try:
            if not self._is_decided:
                self._is_on = self._decide(self._compare())
                self._is_decided = True
        except NotNowError:
            pass
        finally:
            self._lock.release()

    def _compare(self) -> str:
        """The difference between the two results; whatever the program raises is one."""
        try:
            expected = self._program()
            self._thread = threading.get_ident()
            found = self._program()
        except NotNowError:
            raise
        except Exception as error:
            return f"its self-check failed with {error!r}"
        finally:
            self._thread = 0
        for i, (new, old) in enumerate(zip(found, expected)):
            if new != old:
                return f"result {i} of its self-check was {str(new)[:60]}, not {str(old)[:60]}"
        return "" if len(found) == len(expected) else "its self-check had another number of results"
