"""The self-check of a speed hook that meets sources which nobody has tested it with.

Until it is decided, functions in the place of the replacements do what the originals do. The first call of one of them,
which the hook names, runs a small program. Only this thread has the replacements then. If the program gives the right
numbers, the hook is on from then on. Otherwise it is off, and one line says so.
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
        program: gives results; it raises ``NotNowError`` where it cannot run.
        expected: the results that it must give.
        originals: what TensorFlow or Keras has, by name.
        replacements: what the hook puts in its place, by name.
        at: the name whose first call decides.
        decide: is told the outcome, "" if the results are right, else what is wrong; says if the hook is on then.
    """

    def __init__(
        self,
        program: Callable[[], Sequence[Any]],
        expected: Sequence[Any],
        originals: Mapping[str, Callable[..., Any]],
        replacements: Mapping[str, Callable[..., Any]],
        at: str,
        decide: Callable[[str], bool],
    ) -> None:
        self._program, self._expected, self._decide, self._at = program, expected, decide, at
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
        """The first wrong result of the program with the replacements; whatever it raises is wrong, too."""
        self._thread = threading.get_ident()
        try:
            found = self._program()
        except NotNowError:
            raise
        except Exception as error:
            return f"its self-check failed with {error!r}"
        finally:
            self._thread = 0
        for i, (new, right) in enumerate(zip(found, self._expected)):
            if new != right:
                return f"result {i} of its self-check was {str(new)[:60]}, not {str(right)[:60]}"
        return "" if len(found) == len(self._expected) else "its self-check had another number of results"
