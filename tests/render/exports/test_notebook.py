"""A notebook: what Jupyter and Colab open, and its cells run one after another."""

from __future__ import annotations

import json
import re

import nbformat
import pytest

from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from shardviz.render.exports import Subject, title_of
from shardviz.render.exports.script import notebook, script

DEVICES = re.compile(r'jax\.config\.update\("jax_(platforms|num_cpu_devices)", .*\)')
"""What the tests have set up already."""
SCENE = resolve(form_from_options("bd,df->bf", specs="XY,Y_->X_", sizes="b=8,d=16,f=4"))
COMMAND = "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_'"
SUBJECTS = {
    "problem": Subject(SCENE.problem, title_of(SCENE.problem), COMMAND),
    "plan": Subject(SCENE.plan, title_of(SCENE.plan), COMMAND),
}


def cells(text):
    return json.loads(text)["cells"]


def sources(text):
    """The code of every cell that has some, without what Jupyter itself runs."""
    code = ["".join(cell["source"]) for cell in cells(text) if cell["cell_type"] == "code"]
    return [source for source in code if not source.startswith("%")]


def test_cells_run_in_their_order(capsys):
    text = notebook(SUBJECTS["problem"])
    nbformat.validate(nbformat.reads(text, as_version=4))
    here = {}
    for number, source in enumerate(sources(text)):
        exec(compile(DEVICES.sub("", source), f"cell {number}", "exec"), here)
    assert capsys.readouterr().out.count(" all-reduce(") == 1


@pytest.mark.parametrize("name", SUBJECTS)
def test_cells_are_the_script(name):
    cell = [line for source in sources(notebook(SUBJECTS[name])) for line in source.splitlines() if line]
    docstring, how, command, *lines = [line for line in script(SUBJECTS[name]).splitlines() if line]
    assert cell == lines
    assert docstring.startswith('"""')
    assert how == "# To run it: pip install -U jax, then python and this file's name."
    assert command == f"# In a terminal: {COMMAND}"


def test_the_devices_are_set_up_before_anything_is_made():
    first, second, *_ = sources(notebook(SUBJECTS["plan"]))
    assert "jax_num_cpu_devices" in first
    assert "mesh" not in first
    assert "make_mesh" in second


def test_the_first_cells_say_what_this_is_and_install_jax():
    introduction, install, *rest = cells(notebook(SUBJECTS["plan"]))
    text = "".join(introduction["source"])
    assert text.startswith("# The plan of bd,df-\\>bf on the mesh X=2,Y=4\n")
    assert f"    {COMMAND}\n" in text
    assert "They simulate 8 devices on any CPU, even if the runtime has a TPU or a GPU" in text
    assert "".join(install["source"]) == "%pip -q install -U jax"
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in rest)


def test_the_same_subject_gives_the_same_notebook():
    assert notebook(SUBJECTS["plan"]) == notebook(SUBJECTS["plan"])


def test_any_program_becomes_cells_and_loses_no_line():
    code = (
        '"""One line.\n\nAnd *more*.\n"""\n\nimport os\n\nos.environ["A"] = "1"\nimport json\n\n'
        "# about x\nx = 1\n\n\ndef program():\n    y = 2\n\n    return y\n\n\nprint(x)\n\n# the end\n"
        "for n in range(2):\n    print(n, program(), json)\n"
    )
    text = notebook(Subject(code, "T [x] {U_Y} `c`\nimport os"))
    assert "".join(cells(text)[0]["source"]).startswith(
        "# T \\[x\\] \\{U\\_Y\\} \\`c\\` import os\n\nAnd \\*more\\*.\n"
    )
    found = sources(text)
    assert found[0] == 'import os\n\nos.environ["A"] = "1"\nimport json'
    assert found[1:] == [
        "# about x\nx = 1",
        "def program():\n    y = 2\n\n    return y",
        "print(x)",
        "# the end\nfor n in range(2):\n    print(n, program(), json)",
    ]
    nbformat.validate(nbformat.reads(text, as_version=4))


def test_a_command_with_line_breaks_stays_in_its_comment():
    subject = Subject(SCENE.problem, "t", "shardviz explain 'bd\nimport os'")
    assert "# In a terminal: shardviz explain 'bd import os'\n" in script(subject)
