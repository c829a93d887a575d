"""Every line of the README and of the documents that a reader may type does what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from shardviz.cli.group import COMMANDS, run
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.forms.share import from_string
from shardviz.forms.state_file import SavedSession, save_session
from shardviz.lessons.course import course
from shardviz.notation.notations import NOTATIONS
from shardviz.tui import registry
from tests.conftest import one_in

ROOT = Path(__file__).parent.parent
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
}
BLOCKS = [block for page in PAGES.values() for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)]
LINES = sorted({line for block in BLOCKS for line in block.splitlines() if line.startswith("shardviz ")})
LAUNCHING = [line for line in LINES if line.startswith("shardviz launch ")]
PROGRAMS = {
    name: "".join(blocks)
    for name, page in PAGES.items()
    if (blocks := re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S))
}


PRINTED = re.compile(
    r"^<!-- printed by: (?P<command>shardviz .*?)(?:; from: (?P<begin>.*?))? -->\n"
    r"```text\n(?P<quoted>.*?)^```$",
    re.M | re.S,
)
"""Output that a page quotes: all of it, or from the first line on that begins with a text."""
QUOTED = [(name, match) for name, page in PAGES.items() for match in PRINTED.finditer(page)]
NOT_PRINTED = {
    "ci.md": ("-- shardviz: the program and its baseline", "from jax.sharding import"),
    "hosts.md": ("job  4 processes on 2 hosts", "srun -N 2"),
    "how-it-works.md": ("text ── notation",),
}
"""Blocks of text that no command prints here: of several hosts, of pytest, of a reader's own files."""

QUICKLY = {
    "explain": ["--target", "none"],
    "passes": ["--target", "shardy"],
    "program": ["--target", "shardy"],
    "step": ["--on", "none"],
}
"""Who answers here; the real compilers are asked in the tests of their rooms."""
THEIRS = re.compile(r" --hlo\b| --diff \d| --compile \d+")
"""What only they can show."""


@pytest.mark.usefixtures("server_that_ends")
@pytest.mark.parametrize(
    "line",
    [
        *one_in(6, [line for line in LINES if line not in LAUNCHING]),
        *(pytest.param(line, marks=pytest.mark.slow) for line in LAUNCHING),
    ],
)
def test_a_recipe_is_answered(line, capfd, monkeypatch):
    monkeypatch.chdir(ROOT)
    # What opens the application is read up to there: it has no terminal here.
    monkeypatch.setattr("shardviz.cli.tui.no_terminal", lambda: "")
    monkeypatch.setattr("shardviz.cli.open_app.open_app", lambda *_, **__: print("opened") or 0)
    words = shlex.split(THEIRS.sub("", line), comments=True)[1:]
    if "--last" in words:
        save_session(SavedSession(ProblemForm()))
    assert run([*words, *QUICKLY.get(words[0], [])]) == 0
    assert capfd.readouterr().out


def test_the_shared_string_is_a_problem_without_faults():
    shared = re.search(r"--from (shardviz1-\S+)", PAGES["sharing.md"])[1]
    assert resolve(from_string(shared).draft).faults == ()


@pytest.mark.parametrize("name", one_in(3, PROGRAMS))
def test_the_python_code_runs(name, tmp_path):
    (tmp_path / "session.py").write_text(PROGRAMS[name], encoding="utf-8")
    # On a CI a baseline is compared and never made: the page's reader makes it on a machine of their own.
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "CI")}
    words = [sys.executable, "-W", "error", "session.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    if name == "python.md":
        assert "all-reduce over Y" in done.stdout


def test_every_command_is_shown_at_work():
    assert {line.split()[1] for line in LINES} == set(COMMANDS)


def test_the_list_of_lessons_is_whole():
    rows = re.findall(r"^\| (\d+) \| (.+) \| `([\w-]+)` \|", PAGES["lessons.md"], re.MULTILINE)
    assert rows == [(str(lesson.number), lesson.title, lesson.name) for lesson in course()]


def test_the_table_of_notations_is_whole():
    keys = re.findall(r"^\| `(\w+)` \|", PAGES["notations.md"], re.MULTILINE)
    assert keys == [notation.key for notation in NOTATIONS]


KEY_PAGES = {
    "keys.md": ("app", "problem", "lesson"),
    "screen-keys.md": ("layout", "plan", "step", "compiler", "time"),
}
"""The parts of the application whose keys each page lists."""


def key_lists(areas: tuple[str, ...]) -> str:
    """The commands of these parts as Markdown, a heading and a list for each."""
    lines = []
    for area in areas:
        lines += ["", f"## {registry.AREAS[area]}", ""]
        for command in registry.COMMANDS:
            if command.area == area:
                key = f"`{command.own_key}` " if command.key_text else ""
                lines.append(f"- {key}**{command.title}**: {command.help}")
    return "\n".join(lines[1:]) + "\n"


@pytest.mark.parametrize("page", KEY_PAGES)
def test_the_lists_of_keys_are_the_registry(page):
    """``SHARDVIZ_SNAPSHOTS=write pytest tests/test_docs.py -k keys`` writes the lists anew."""
    prose, _, lists = PAGES[page].partition("<!-- keys -->\n")
    expected = key_lists(KEY_PAGES[page])
    if os.environ.get("SHARDVIZ_SNAPSHOTS") == "write":
        (ROOT / "docs" / page).write_text(f"{prose}<!-- keys -->\n{expected}", encoding="utf-8")
        return
    assert lists == expected


def test_every_key_is_on_one_page():
    listed = [area for areas in KEY_PAGES.values() for area in areas]
    assert sorted(listed) == sorted({command.area for command in registry.COMMANDS})


def test_links_and_pictures_are_there():
    for name in PAGES:
        folder = ROOT if name == "README.md" else ROOT / "docs"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[name]):
            assert (folder / target).exists(), target


def test_tables_and_blocks_of_code_are_whole():
    """A row is a line, with as many cells as the head; a fence has a line of its own."""
    for name in PAGES:
        text = re.sub(r"^```.*?^```$", "", PAGES[name], flags=re.M | re.S)
        assert "```" not in text
        for table in re.findall(r"(?:^\|.*\n)+.*", text, re.M):
            *rows, behind = table.split("\n")
            assert behind == "", f"a row goes on: {behind}"
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, rows[0]


def test_every_picture_is_shown():
    shown = " ".join(PAGES.values())
    assert [path.name for path in (ROOT / "screenshots").glob("*.svg") if path.name not in shown] == []


def test_the_example_that_ships_is_the_one_of_the_page():
    shown = re.search(r"^```python\n(.*?)^```$", PAGES["own-programs.md"], re.M | re.S)
    assert shown[1] == (ROOT / "shardviz" / "examples" / "train_step.py").read_text(encoding="utf-8")


def test_every_block_of_text_is_printed_by_its_command_or_by_none():
    for name, page in PAGES.items():
        for block in re.findall(r"^```text\n(.*?)^```$", PRINTED.sub("", page), re.M | re.S):
            begins = block.lstrip("-").removeprefix(" ")
            own = (*(each.lstrip("- ") for each in NOT_PRINTED.get(name, ())), "shardviz ")
            assert begins.startswith(own), (
                f"{name}: write <!-- printed by: shardviz … --> above {block[:60]!r}"
            )


@pytest.mark.parametrize(
    ("name", "match"), QUOTED, ids=[f"{name}:{match['command'][:40]}" for name, match in QUOTED]
)
def test_what_a_page_quotes_is_what_is_printed(name, match, capfd, monkeypatch):
    """``SHARDVIZ_SNAPSHOTS=write pytest tests/test_docs.py -k quotes`` writes the blocks anew."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    assert run(shlex.split(match["command"])[1:]) == 0
    lines = [line.rstrip() for line in capfd.readouterr().out.splitlines()]
    begin = match["begin"] or ""
    first = next(number for number, line in enumerate(lines) if line.startswith(begin))
    printed = "\n".join(lines[first:]).strip("\n") + "\n"
    if os.environ.get("SHARDVIZ_SNAPSHOTS") == "write":
        path = ROOT / "README.md" if name == "README.md" else ROOT / "docs" / name
        page, whole = path.read_text(encoding="utf-8"), match[0]
        own = whole[: whole.index("```text")] + f"```text\n{printed}```"
        path.write_text(page.replace(whole, own), encoding="utf-8")
        return
    assert match["quoted"] == printed


@pytest.mark.slow
def test_the_built_pages_load_nothing_from_elsewhere(tmp_path):
    """Tags that a browser follows by itself, imports of styles, and the theme's parts that ask another host:
    Material's `source` asks api.github.com for stars, its diagrams load mermaid."""
    pytest.importorskip("material", reason="the extra docs is not installed")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pages = [*tmp_path.rglob("*.html")]
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    loads = re.compile(
        r"<(?!a\b)\w+\b[^>]*?\b(?:src|href|srcset|data|poster)=[\"']?(?:https?:)?//[^>]*"
        r"|data-md-component=[\"']?source\b|class=[\"']?mermaid\b"
    )
    for page in pages:
        assert loads.search(page.read_text(encoding="utf-8")) is None, page.name
    elsewhere = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*")
    for style in (*tmp_path.rglob("*.css"), *pages):
        assert elsewhere.search(style.read_text(encoding="utf-8")) is None, style.name


@pytest.mark.slow
def test_the_source_distribution_has_all_files(tmp_path):
    """But for those of the repository's services, which begin with a dot."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a checkout")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    pictures = {f"docs/screenshots/{path.name}" for path in (ROOT / "screenshots").glob("*.svg")}
    tracked = {name for name in listed.stdout.splitlines() if not name.startswith(".")}
    assert (tracked - {"docs/screenshots"} | pictures) - packed == set()
