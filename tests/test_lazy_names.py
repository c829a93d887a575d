"""Packages that import their names on first use: what type checkers see is what there is."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import shardviz

ROOT = Path(shardviz.__file__).parent
LAZY = sorted(path for path in ROOT.rglob("__init__.py") if "= lazy_names(" in path.read_text("utf-8"))


def typed_names(path: Path) -> dict[str, str]:
    """Every name that a package imports for type checkers, and where from."""
    (checked,) = (node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    return {alias.name: node.module for node in imports for alias in node.names}


@pytest.mark.parametrize("path", LAZY, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_type_checkers_see_the_names_that_there_are(path: Path) -> None:
    package = import_module(".".join(("shardviz", *path.parent.relative_to(ROOT).parts)))
    typed = typed_names(path)
    assert sorted(typed) == package.__all__
    assert set(typed) <= set(dir(package))
    for name, home in typed.items():
        module = import_module(home)
        assert package.__getattr__(name) is getattr(module, name)


def test_there_are_such_packages() -> None:
    assert len(LAZY) >= 3


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'shardviz' has no attribute 'expain'"):
        _ = shardviz.expain  # type: ignore[attr-defined]


def test_a_lazy_import_is_loaded_by_its_first_name() -> None:
    code = """
import sys
from shardviz.lazy_names import LazyImports
with LazyImports():
    from shardviz.notation import notations, numbers
    from shardviz.notation.numbers import parse_range
names = ["shardviz.notation.notations", "shardviz.notation.numbers"]
print([name in sys.modules for name in names], numbers.parse_range is parse_range)
print(bool(notations.NOTATIONS), notations.NOTATIONS is sys.modules[names[0]].NOTATIONS)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[False,", "True]", "True", "True", "True"]
