"""Which room may import which: the table of the design, as it stands, with nothing running back up."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import shardviz

ROOT = Path(shardviz.__file__).parent
PURE = {
    "sharding",
    "notation",
    "collectives",
    "hardware",
    "planner",
    "models",
    "hlo",
    "timeline",
    "reports",
    "compare",
    "profiles",
    "stepping",
    "devices",
    "targets",
}
MAY_IMPORT = {
    "errors": set(),
    "garbage": set(),
    "lazy_names": set(),
    "strict_table": set(),
    "text_tables": set(),
    "units": set(),
    "user_files": set(),
    "sharding": set(),
    "notation": {"sharding"},
    "collectives": {"sharding", "notation"},
    "hardware": {"sharding", "notation", "collectives"},
    "planner": {"sharding", "notation", "hardware"},
    "models": {"sharding", "notation", "hardware", "planner"},
    "hlo": {"sharding"},
    "timeline": {"sharding", "hardware", "planner", "hlo"},
    "targets": {"sharding", "hardware", "planner"},
    "reports": {"sharding", "notation", "hardware", "planner", "hlo", "timeline", "targets"},
    "compare": {"sharding", "hardware", "planner", "hlo", "reports"},
    "profiles": {"sharding", "hardware", "hlo", "timeline"},
    "devices": {"sharding", "hardware"},
    "stepping": {"sharding", "notation", "collectives", "hardware", "planner", "reports"},
    "codegen": {"sharding", "notation", "collectives", "hardware", "planner", "targets", "stepping"},
    "compiler": {
        "sharding",
        "notation",
        "collectives",
        "hardware",
        "planner",
        "hlo",
        "timeline",
        "targets",
        "reports",
        "profiles",
        "devices",
        "codegen",
    },
    "forms": {"sharding", "notation", "collectives", "hardware", "planner", "targets", "stepping"},
    "lessons": {*PURE, "compiler", "forms"},
    "documents": {*PURE, "forms", "lessons"},
    "render": {*PURE, "forms", "lessons", "codegen"},
    "answers": {*PURE, "compiler"},
    "api": {*PURE, "compiler", "forms", "lessons", "documents", "answers", "render"},
    "testing": {"hardware", "hlo", "timeline", "reports", "documents", "answers", "api", "render"},
    "tui": {*PURE, "compiler", "forms", "lessons", "documents", "codegen", "answers", "render"},
    "serve": {"targets", "compiler", "forms", "lessons", "tui"},
    "examples": set(),
    "cli": {*PURE, "compiler", "forms", "lessons", "documents", "answers", "render", "tui", "serve"},
    "__main__": {"cli"},
    "__init__": {"api", "sharding", "testing"},
}
OPEN_TO_ALL = {
    "errors",
    "garbage",
    "lazy_names",
    "strict_table",
    "text_tables",
    "units",
    "user_files",
    "__version__",
}


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "shardviz":
                names = [f"shardviz.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("shardviz."):
                yield name.split(".")[1]


def test_every_room_is_in_the_table():
    assert {room(path) for path in ROOT.rglob("*.py")} == set(MAY_IMPORT)


def test_the_document_has_the_same_table():
    text = (ROOT.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \| .+ \| (.+) \|$", text, re.MULTILINE)
    said = {name: set() if cell == "–" else set(cell.split(", ")) for name, cell in rows}
    for cell in said.values():
        if "the engines" in cell:
            cell |= PURE
            cell.remove("the engines")
    assert said == {name: rooms for name, rooms in MAY_IMPORT.items() if not name.startswith("__")}


def test_rooms_import_only_what_they_may():
    wrong = [
        f"{path.relative_to(ROOT)} imports {found}"
        for path in sorted(ROOT.rglob("*.py"))
        for found in imported_rooms(path)
        if found not in OPEN_TO_ALL | {room(path)} | MAY_IMPORT[room(path)]
    ]
    assert wrong == []


def test_the_architecture_names_what_is_there():
    text = (ROOT.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms, walks, files = re.split(r"^## .*$", text, flags=re.MULTILINE)
    named = set(re.findall(r"^\| `([\w.]+)/?`", rooms, re.MULTILINE)) | set(
        re.findall(r", `([\w.]+)/?`(?=.*\|)", rooms)
    )
    assert {name.removesuffix(".py") for name in named} >= set(MAY_IMPORT) - {"__main__", "__init__"}
    for path in re.findall(r"`((?:shardviz|docs|tests)/[\w./]*)`", files):
        assert (ROOT.parent / path).exists() or "NN-" in path, path
    for path in re.findall(r"`([a-z]+/[\w./]*)`", walks):
        assert (ROOT / path).exists(), path
