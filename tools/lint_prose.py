#!/usr/bin/env python3
"""Checks the English of the documents (README.md, docs/*.md ...) and of all comments in C++, OpenCL C and Python.

tools/lint_prose.py             fails where a file has more problems than tools/prose_problems.json allows it
tools/lint_prose.py FILE...     prints every problem of these files
tools/lint_prose.py --update    lowers the numbers in that file to what there is now; it raises none

Problems are a sentence of more than 25 words, an opening with "What", "Whether" or "Of", and a word that
docs/glossary.md replaces with another. Questions and headings may open so. Text in a table's cell counts like any
other; code does not count. A file that is not in the list must have no problem.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import json
import pathlib
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "tools" / "prose_problems.json"
GLOSSARY = ROOT / "docs" / "glossary.md"
ROOMS = ("benchmarks", "examples", "python", "tensorflow_plugin", "tests", "tools")  # the folders with sources
MOST_WORDS = 25

_CODE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)[)\"”*_]*\s+(?=[\"“(*_\[]*[A-Z0-9`])")
_OPENING = re.compile(r"[\"“(*_]*(What|Whether|Of)\b")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_APART = re.compile(r"\s{2,}")  # a line of a drawing
_FIELD = re.compile(r"\s*[\w.*]+(?:, [\w.*]+)*: ")  # an argument or attribute, as in "Args:"
_GAP = re.compile(r"(?<=\S)\s{2,}(?=\S)|\s*(?<!\|)\|(?!\|)\s(?=.*\|$)")  # between the cells of a table
_TRAILING = re.compile(r"[;,{})\\\s]\s*//+ (.*)$")


def pages() -> list[pathlib.Path]:
    """All documents and all sources with comments."""
    named = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")
    sources = (path for room in ROOMS for path in sorted((ROOT / room).rglob("*")) if path.suffix in COMMENTS)
    return [*(ROOT / name for name in named), *sorted((ROOT / "docs").glob("*.md")), *sources]


@functools.cache
def replaced_words() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The glossary's last table: the words that are not used, with the one that is."""
    table = GLOSSARY.read_text().partition("## Words not used")[2]
    rows = [
        (re.findall(r"`([^`]+)`", row), row.split("|")[2].strip())
        for row in table.splitlines()
        if row.startswith("| `")
    ]
    return tuple((re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE), word) for words, word in rows)


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, list items and cells of a document, each with the number of its first line; no headings."""
    begin, lines, in_code = 0, list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = "" if line.startswith("#") and not in_code else line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
            stripped = ""
        elif in_code or (line.startswith("    ") and not lines):
            continue
        starts = re.match(r"([-*+]|\d+\.|>|\|)\s*", stripped) is not None and not stripped.startswith("**")
        if lines and (not stripped or starts):
            yield begin, " ".join(lines)
            lines = []
        if stripped.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", stripped.strip("|")):
                yield number, cell.strip()
        elif stripped and not stripped.startswith(("<!--", "![")):
            if not lines:
                begin = number
            lines.append(re.sub(r"^([-*+]|\d+\.|>)\s+", "", stripped) if starts else stripped)


def paragraphs(lines: Sequence[str], begin: int) -> Iterator[tuple[int, str]]:
    """The paragraphs and list items of one comment, given without its marks."""
    first, gathered = begin, list[str]()
    indented: bool | None = False  # the rest of the paragraph; None: it may be either
    for number, line in enumerate([*lines, ""], begin):
        item, field = _ITEM.match(line), _FIELD.match(line)
        cells = _GAP.split(line)
        apart = _APART.match(line) is not None
        if gathered and (not line.strip() or indented not in (None, apart) or item or field or len(cells) > 1):
            yield first, " ".join(gathered)
            gathered = []
        if len(cells) > 1:
            yield from ((number, cell.strip()) for cell in cells)
        elif line.strip():
            if not gathered:
                first, indented = number, None if field and not apart else apart or item is not None
            gathered.append(_ITEM.sub("", line).strip())


def comments_of_cpp(text: str) -> Iterator[tuple[int, str]]:
    begin, lines, column = 0, list[str](), -1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        own = re.match(r"\s*//+ ?(.*)", line)
        if own and lines and column == line.index("//"):
            lines.append(own[1])
            continue
        yield from paragraphs(lines, begin)
        lines = []
        if comment := own or _TRAILING.search(line):
            begin, lines, column = number, [comment[1]], line.rindex("//", 0, comment.start(1))


def comments_of_python(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and ast.get_docstring(node):
                yield from paragraphs(ast.get_docstring(node, clean=True).splitlines(), first.lineno)  # type: ignore[union-attr]
    begin, lines, last, column = 0, list[str](), -1, -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#!", "# type:", "# noqa")):
            continue
        comment = re.sub(r"^#+ ?", "", token.string)
        if lines and token.start == (last + 1, column) and token.line.lstrip().startswith("#"):
            lines.append(comment)
        else:
            yield from paragraphs(lines, begin)
            begin, lines = token.start[0], [comment]
        last, column = token.start
    yield from paragraphs(lines, begin)


COMMENTS: dict[str, Callable[[str], Iterator[tuple[int, str]]]] = {
    **dict.fromkeys((".cc", ".h", ".cl"), comments_of_cpp),
    ".py": comments_of_python,
}


def sentences(block: str) -> list[str]:
    """The sentences of a block, with code as it is; of a link its text is left."""
    code = _CODE.findall(block)
    plain = _LINK.sub(r"\1", _CODE.sub("`code`", block))
    rest = iter(code)
    split = [sentence.strip() for sentence in _END.split(plain) if sentence.strip()]
    return [re.sub("`code`", lambda _: next(rest), sentence) for sentence in split]


def problems_of(sentence: str) -> Iterator[str]:
    plain = _CODE.sub("`code`", sentence)
    words = [word for word in plain.split() if re.search(r"\w", word)]
    is_list = sum(word.endswith((",", ";")) for word in words) > 0.6 * len(words)  # of names, and no sentence
    start = " ".join(plain.split()[:7])
    if len(words) > MOST_WORDS and not is_list:
        yield f"{len(words)} words, more than {MOST_WORDS}: {start} ..."
    if (opening := _OPENING.match(plain)) and not plain.rstrip(')"”*_').endswith("?"):
        yield f'opens with "{opening[1]}": {start} ...'
    for pattern, word in replaced_words():
        if found := pattern.search(plain):
            yield f'says "{found[0]}" for "{word}": {start} ...'


def problems(text: str, suffix: str = ".md") -> list[tuple[int, str]]:
    """All that is wrong in a document or source, each with the number of the line at which its paragraph begins."""
    found = COMMENTS.get(suffix, blocks)(text)
    return [(line, said) for line, block in found for sentence in sentences(block) for said in problems_of(sentence)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args(arguments)
    if options.files:
        found = [(path, *problem) for path in options.files for problem in problems(path.read_text(), path.suffix)]
        for path, line, said in found:
            print(f"{path}:{line}: {said}")
        return bool(found)
    allowed: dict[str, int] = json.loads(ALLOWED.read_text())
    there = {str(path.relative_to(ROOT)): problems(path.read_text(), path.suffix) for path in pages()}
    if options.update:
        lowered = {name: min(count, len(there[name])) for name, count in allowed.items() if there.get(name)}
        ALLOWED.write_text(json.dumps(lowered, indent=1, sort_keys=True) + "\n")
        allowed = lowered
    status = 0
    for name, found_there in there.items():
        if len(found_there) <= allowed.get(name, 0):
            continue
        status = 1
        for line, said in found_there:
            print(f"{name}:{line}: {said}")
        print(f"{name}: {len(found_there)} problems of style; {ALLOWED.name} allows {allowed.get(name, 0)}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
