"""Answers in a notebook, as Jupyter's own client runs it: each cell shows its answer once."""

from __future__ import annotations

import nbclient
import nbformat
import pytest

import shardviz
from shardviz.user_files import EXAMPLES

PROGRAM = EXAMPLES / "mlp.txt"
START = "import rich, shardviz"
CELLS = {
    "shardviz.explain('bd,df->bf', specs='XY,Y_->X_', target='none')": "execute_result",
    "found = shardviz.rank('bd,df->bf', mesh='X=2')\nfound": "execute_result",
    f"shardviz.read_hlo(open({str(PROGRAM)!r}).read())": "execute_result",
    "display(found)": "display_data",
    "rich.print(found)": "display_data",
    "print(found)": "stream",
    # A picture that is drawn into a text goes nowhere else.
    "from shardviz.render.exports import Subject\n"
    "from shardviz.render.exports.pictures import svg\n"
    "cost = shardviz.explain('ij,jk->ik', specs='XY,Y_', target='none').cost\n"
    "len(svg(Subject(cost.plan, 'a plan', placed=cost.placed)))": "execute_result",
}
"""What a cell says, and the one kind of output that it has."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_cell_has_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    cells = [nbformat.v4.new_code_cell(source) for source in (START, *CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    first, *answers = notebook.cells
    assert first.outputs == []
    for cell, kind in zip(answers, CELLS.values(), strict=True):
        assert [output.output_type for output in cell.outputs] == [kind], cell.source
    (shown,) = answers[0].outputs
    answer = shardviz.explain("bd,df->bf", specs="XY,Y_->X_", target="none")
    assert shown.data["text/plain"] == repr(answer)
    assert shown.data["text/html"] == answer._repr_mimebundle_()["text/html"]
