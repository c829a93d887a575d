"""Who imports what: jax in the child only, and in the child little else."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGE = {"errors", "lazy_names"}
"""What the package itself loads, whoever imports a part of it."""


def loaded_by(code):
    """Names of the modules that are loaded after the code has run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


ASK = """
from shardviz.compiler import Worker
from shardviz.targets import TARGETS, parse_targets
from shardviz.targets import installed_versions
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text
with Worker() as worker:
    problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_", sizes="")
    assert worker.ask(problem, TARGETS["shardy"]).status == "ok"
assert dict(installed_versions())["jax"]
"""


def test_the_parent_never_loads_jax_or_numpy():
    assert not loaded_by(ASK) & {"jax", "jaxlib", "numpy", "rich", "textual"}


def test_starting_a_worker_loads_no_other_room():
    loaded = loaded_by("import shardviz.compiler.worker, shardviz.compiler.worker_process")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("shardviz.")}
    assert rooms == {*PACKAGE, "sharding", "compiler", "targets", "reports", "devices"}


def test_the_child_loads_no_other_room():
    loaded = loaded_by("import shardviz.compiler.child.answer, shardviz.compiler.child.main")
    assert "jax" in loaded
    # What runs collectives is loaded when that is asked first.
    assert "shardviz.compiler.child.collective" not in loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("shardviz.")}
    assert rooms == {*PACKAGE, "garbage", "sharding", "compiler", "targets", "reports"}


def test_an_unknown_name_of_the_room():
    import shardviz.compiler

    with pytest.raises(AttributeError, match="has no attribute 'Wroker'"):
        shardviz.compiler.Wroker  # noqa: B018
    assert all(hasattr(shardviz.compiler, name) for name in shardviz.compiler.__all__)
