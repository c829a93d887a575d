"""The page of a whole model: what it is, its parameters, the memory of a device, and a step."""

from __future__ import annotations

from rich.text import Text

from shardviz.models.answer import ModelAnswer
from shardviz.models.question import ModelQuestion
from shardviz.render.caption import mesh_text
from shardviz.render.lines import sentence
from shardviz.render.models.memory_bars import memory_lines
from shardviz.render.models.parameter_table import parameter_lines
from shardviz.render.models.step_lines import step_lines
from shardviz.render.palette import Palette
from shardviz.units import human_bytes


def parameters_view(question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """The model, the mesh and the rules, then a row for each parameter."""
    model, rules = question.model, question.split.rules
    size = f"{model.nbytes / 1e9:,.4g} GB" if model.nbytes >= 10**9 else human_bytes(model.nbytes)
    words = f"{model.elements:,} parameters in {', '.join(model.dtypes)}, {size}"
    lines = sentence(words, width, lead=f"{model.name}  ")
    lines += sentence(model.source, width, style="dim")
    mesh = Text("mesh ").append_text(mesh_text(question.mesh, palette))
    lines += [Text(), *_headline(mesh, rules.name, width)]
    return [*lines, Text(), *parameter_lines(question.split, width, palette)]


def _headline(mesh: Text, rules: str, width: int) -> list[Text]:
    whole = mesh.copy().append(f"   rules {rules}")
    return [whole] if whole.cell_len <= width else [mesh, *sentence(f"rules {rules}", width)]


def answer_view(answer: ModelAnswer, width: int, palette: Palette) -> list[Text]:
    """The memory of a device, and the step where one is planned."""
    question, step = answer.question, answer.step
    lines = [Text(), *memory_lines(answer.memory, question, width, palette)]
    return lines if step is None else [*lines, Text(), *step_lines(step, question, width, palette)]
