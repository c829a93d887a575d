"""No two files of the package need each other, late imports and those for types counted.

A circle of files is one piece that pretends to be several: none of them can be understood, tested or moved
without the others.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import shardviz

PACKAGE = Path(shardviz.__file__).parent


def modules(package):
    """The files of a package by the name that an import has for them."""
    found = {}
    for path in package.rglob("*.py"):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports(name: str, path: Path, files: Mapping[str, Path]) -> set[str]:
    """The files that a file imports: anywhere in it, also within functions and where only types are checked.

    Names that a package's face hands on count as the face; a name that is itself a file, as that file.
    """
    found = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
            found |= {each if (each := f"{base}.{alias.name}") in files else base for alias in node.names}
    return found & files.keys() - {name}


def circle(package: Path) -> list[str]:
    """The files of one circle, the first again at its end; empty where there is none."""
    files = modules(package)
    graph = {name: imports(name, path, files) for name, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_files_import_each_other():
    assert circle(PACKAGE) == []


@pytest.mark.parametrize(
    "back",
    [
        "import house.upper\n",
        "from house import upper\n",
        "from . import upper\n",
        "from house.upper import Room\n",
        "def late():\n    from house.upper import Room\n    return Room\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.upper import Room\n",
    ],
)
def test_a_circle_is_found_wherever_its_import_stands(tmp_path, back):
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").write_text("")
    (house / "upper.py").write_text("from house.lower import Floor\nclass Room: ...\n")
    lower = house / "lower.py"
    lower.write_text("class Floor: ...\n")
    assert circle(house) == []
    lower.write_text(f"{back}class Floor: ...\n")
    assert {*circle(house)} == {"house.lower", "house.upper"}
