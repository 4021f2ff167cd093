"""Tables, as text for terminals and as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

Row = Sequence[str]


def text(rows: Sequence[Row]) -> str:
    """Rows in columns of one width each; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(lines)


def as_html(rows: Sequence[Row]) -> str:
    """A ``<table>`` of the rows, the first of which is the heading."""

    def line(tag: str, row: Row) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"

    heading, *others = rows
    return f"<table>{line('th', heading)}{''.join(line('td', row) for row in others)}</table>"
