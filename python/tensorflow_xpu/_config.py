"""The options, each with its source: ``show_config()``."""

from __future__ import annotations

from tensorflow_xpu import _settings, _tables
from tensorflow_xpu._settings import Setting


class Config(tuple[Setting, ...]):
    """The options of this process, one :class:`Setting` each: prints as a table, in notebooks too."""

    __slots__ = ()

    def rows(self) -> list[tuple[str, ...]]:
        """A heading, and a row for each option."""
        heading = ("option", "value", "set by", "variable")
        return [heading, *((s.parameter, _value(s), _source(s), s.variable) for s in self)]

    def __repr__(self) -> str:
        return _tables.text(self.rows())

    def _repr_html_(self) -> str:
        return _tables.as_html(self.rows())


def _value(setting: Setting) -> str:
    return setting.value if setting.understood else f"{setting.default} ({setting.value!r} makes no sense)"


def _source(setting: Setting) -> str:
    if setting.source == "default":
        return "-"
    return setting.origin or setting.source


def show_config() -> Config:
    """The plugin's options as they are for this process, and who says so.

    A call of :func:`configure` or :func:`set_subdevice_mapping` goes before the environment, which goes before the
    configuration file, which goes before the default.

    Returns:
        A tuple of settings, each with ``variable``, ``parameter``, ``value``, ``source`` (``call``, ``environment``,
        ``file``, ``default``), ``origin`` (the file), ``default`` and ``meaning``; it prints as a table.

    >>> import tensorflow_xpu
    >>> tensorflow_xpu.configure(devices=4)
    >>> [(setting.value, setting.source) for setting in tensorflow_xpu.show_config() if setting.parameter == "devices"]
    [('4', 'call')]
    """
    return Config(_settings.current())
