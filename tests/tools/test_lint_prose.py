"""tools/lint_prose.py: which sentences it finds, and that its numbers can only fall."""

import json
import pathlib
import sys

import pytest

from tests.support.installed import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import lint_prose

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def found(text, suffix=".md"):
    return [said.partition(":")[0] for _, said in lint_prose.problems(text, suffix)]


def words(count):
    return " ".join(["word"] * count)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Short. And short, too.", []),
        (f"W {words(24)}.", []),
        (f"W {words(25)}.", ["26 words, more than 25"]),
        (f"W {words(16)}.\nW {words(16)}.", []),  # two sentences
        (f"W {words(16)}\n{words(16)}.", ["33 words, more than 25"]),  # one on two lines
        (f"W {words(16)}\n\n{words(16)}.", []),
        (f"- W {words(16)}\n- {words(16)}.", []),
        (f"| {words(16)} | {words(16)} |", []),
        (f"| a | {words(26)} |", ["26 words, more than 25"]),
        (f"W {words(22)} `several words of code` [a link](to/a/page.md).", ["26 words, more than 25"]),
        (f"```sh\n{words(40)}\n```\n\n    {words(40)}\n", []),
        (f"| {', '.join(['Name'] * 40)} |", []),
        ("What it reads is copied.", ['opens with "What"']),
        ("It waits. Whether it may is asked first. Of these one stays.", ['opens with "Whether"', 'opens with "Of"']),
        ("What does it read?", []),
        ("## What works\n\nIt works.", []),
        ("| what | Of a list |", ['opens with "Of"']),
        ("Version 2.21 is there, e.g. What it reads.", []),
    ],
)
def test_sentences(text, said):
    assert found(text) == said


W26 = words(26)


@pytest.mark.parametrize(
    ("text", "suffix", "said"),
    [
        (f"// W {words(16)}\n// {words(16)}.\nint i;", ".cc", ["33 words, more than 25"]),
        (f"// W {words(16)}.\n// W {words(16)}.\nint i;", ".h", []),
        (f"// W {words(16)}\n\n// {words(16)}.\nint i;", ".h", []),  # two comments
        (f"// W {words(16)}\n//\n// {words(16)}.\nint i;", ".h", []),  # two paragraphs
        (f"// - W {words(16)}\n//   {words(16)}.\n// - W.", ".h", ["33 words, more than 25"]),  # an item
        (f"// {words(16)}   {words(16)}\n// {words(16)}", ".h", []),  # the row of a table
        (f"// - {words(16)}\n// {words(16)}", ".h", []),  # no part of the item
        (f"int i;  // w {words(16)}\n        // {words(16)}", ".cc", ["33 words, more than 25"]),
        (f"int i;  // w {words(16)}\n// {words(16)}", ".cc", []),  # the second belongs to the next line
        ('auto url = "http://a";  // What it is.', ".h", ['opens with "What"']),
        (f'const char* url = "http://{W26}";', ".cl", []),
        ("// Whether `i` is.\nint i;  // of two", ".h", ['opens with "Whether"']),
        (f'"""W {words(16)}\n{words(16)}.\n\nOf it.\n"""\n', ".py", ["33 words, more than 25", 'opens with "Of"']),
        (f'def f():\n    """What it is."""\n    return "What {W26}"\n', ".py", ['opens with "What"']),
        (f"# W {words(16)}\n# {words(16)}.\ni = 1  # Of it.\n", ".py", ["33 words, more than 25", 'opens with "Of"']),
        (f"i = 1  # w {words(16)}\n# w {words(16)}\nj = 2\n", ".py", []),
    ],
)
def test_comments(text, suffix, said):
    assert found(text, suffix) == said


def test_words_that_the_glossary_replaces():
    assert found("Whoever reads it waits. A value crosses. `crosses`") == [
        'says "Whoever" for "the caller, the owner, the reader',
        'says "crosses" for "transfer, or is copied"',
    ]
    assert found("// It hangs on that.", ".cc") == ['says "hangs on" for "depends on"']
    assert found("The crossbar, and changes on it.") == []


def test_the_line_is_that_of_the_paragraph():
    assert lint_prose.problems("# Head\n\nIt is.\nWhat it is.\n")[0][0] == 3


def test_documents_may_have_no_more_than_they_are_allowed(tmp_path, monkeypatch, capsys):
    pages = [tmp_path / "a.md", tmp_path / "b.md"]
    monkeypatch.setattr(lint_prose, "ROOT", tmp_path)
    monkeypatch.setattr(lint_prose, "ALLOWED", tmp_path / "allowed.json")
    monkeypatch.setattr(lint_prose, "pages", lambda: pages)
    pages[0].write_text("What it is. What it was.")
    pages[1].write_text("Good.")
    (tmp_path / "allowed.json").write_text('{"a.md": 3, "b.md": 1}')
    assert lint_prose.main([]) == 0
    assert lint_prose.main(["--update"]) == 0
    assert json.loads((tmp_path / "allowed.json").read_text()) == {"a.md": 2}
    pages[1].write_text("What it is.")  # which had none
    assert lint_prose.main([]) == 1
    assert "b.md:1: opens with" in capsys.readouterr().out
    assert lint_prose.main(["--update"]) == 1
    assert json.loads((tmp_path / "allowed.json").read_text()) == {"a.md": 2}
    assert lint_prose.main([str(pages[0])]) == 1


def test_the_documents_are_those_of_the_project():
    names = {str(path.relative_to(ROOT)) for path in lint_prose.pages()}
    assert {"README.md", "CONTRIBUTING.md", "docs/architecture.md"} <= names
    assert all(pathlib.Path(ROOT, name).exists() for name in json.loads(lint_prose.ALLOWED.read_text()))
