#!/usr/bin/env python3
"""Checks the English of the documents: README.md, CONTRIBUTING.md, CHANGELOG.md, tests/README.md and docs/*.md.

tools/lint_prose.py             fails where a document has more problems than tools/prose_problems.json allows it
tools/lint_prose.py FILE...     prints every problem of these documents
tools/lint_prose.py --update    lowers the numbers in that file to what there is now; it raises none

A problem is a sentence of more than 30 words, or one that opens with "What", "Whether" or "Of". Questions and headings
may open so. Text in a table's cell counts like any other; code blocks do not count. A document that is not in the file
must have no problem.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "tools" / "prose_problems.json"
MOST_WORDS = 30

_CODE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)[)\"”*_]*\s+(?=[\"“(*_\[]*[A-Z0-9`])")
_OPENING = re.compile(r"[\"“(*_]*(What|Whether|Of)\b")


def pages() -> list[pathlib.Path]:
    named = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")
    return [*(ROOT / name for name in named), *sorted((ROOT / "docs").glob("*.md"))]


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


def sentences(block: str) -> list[str]:
    """The sentences of a block; code is a word, and of a link its text is left."""
    plain = _LINK.sub(r"\1", _CODE.sub("`code`", block))
    return [sentence.strip() for sentence in _END.split(plain) if sentence.strip()]


def problems(text: str) -> list[tuple[int, str]]:
    """What is wrong, each with the number of the line at which its paragraph begins."""
    found = []
    for line, block in blocks(text):
        for sentence in sentences(block):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            is_list = sum(word.endswith((",", ";")) for word in words) > 0.6 * len(words)  # of names, and no sentence
            count = 0 if is_list else len(words)
            start = " ".join(sentence.split()[:7])
            if count > MOST_WORDS:
                found.append((line, f"{count} words, more than {MOST_WORDS}: {start} ..."))
            if (opening := _OPENING.match(sentence)) and not sentence.rstrip(')"”*_').endswith("?"):
                found.append((line, f'opens with "{opening[1]}": {start} ...'))
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args(arguments)
    if options.files:
        found = [(path, *problem) for path in options.files for problem in problems(path.read_text())]
        for path, line, said in found:
            print(f"{path}:{line}: {said}")
        return bool(found)
    allowed: dict[str, int] = json.loads(ALLOWED.read_text())
    there = {str(path.relative_to(ROOT)): problems(path.read_text()) for path in pages()}
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
