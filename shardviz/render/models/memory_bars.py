"""The memory of a device for a whole model, as bars against what its chip has."""

from __future__ import annotations

from rich.text import Text

from shardviz.models.answer import ModelAnswer, ModelMemory
from shardviz.models.question import ModelQuestion
from shardviz.render.bar import bar
from shardviz.render.lines import sentence
from shardviz.render.palette import PLAIN, Palette
from shardviz.units import human_bytes

NAME, SIZE = 18, 9
"""Columns of a bar's name and of its bytes."""
TEXT_WIDTH = 100
"""Columns of the message of a test."""


def memory_lines(memory: ModelMemory, question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """A bar for each use of memory, and whether a train step and serving fit."""
    chip = question.placed.machine.chip
    has = (
        "" if memory.limit is None else f", of the {human_bytes(memory.limit)} that {chip} has for a program"
    )
    lines = sentence(f"bytes of one device{has}", width, lead="memory  ")
    rows = memory_rows(memory, question)
    most = max([memory.limit or 0, *(size for _, size in rows)])
    room = max(width - NAME - SIZE - 4, 1)
    for name, size in rows:
        line = Text(f"  {name:<{NAME}}{human_bytes(size):>{SIZE}}  ")
        lines.append(line.append(bar(size, most, room), palette.lanes["memory"]))
    for words in fit_words(memory, question):
        lines += sentence(words, width, 2)
    return lines


def memory_rows(memory: ModelMemory, question: ModelQuestion) -> list[tuple[str, int]]:
    """The uses of memory and their bytes: those of training where there is any, those of serving last."""
    rows = [("parameters", memory.parameters)]
    training = question.training
    if training is not None and training.optimizer is not None:
        rows.append((f"{training.optimizer.rule} state", memory.optimizer))
    if memory.working is not None:
        rows.append(("a step, at most", memory.working))
    if training is not None:
        # Not all of both is there at the same time.
        lead = "" if memory.working is None else "  "
        rows.append((f"{lead}gradients", memory.gradients))
        if memory.activations is not None:
            rows.append((f"{lead}activations", memory.activations))
    if memory.keys_and_values is not None:
        rows.append(("KV cache", memory.keys_and_values))
    return rows


def fit_words(memory: ModelMemory, question: ModelQuestion) -> list[str]:
    """The sentences on what fits: ``a train step holds 21.6 GiB: fits, 74.1 GiB are free``."""
    tokens = question.tokens
    words = []
    if question.training is not None:
        what = "a train step" if memory.working is not None else "a train step without activations"
        words.append(f"{what} holds {_verdict(memory, memory.training)}")
    if memory.keys_and_values is not None:
        held = f"inference with a KV cache of {tokens.batch:,} × {tokens.sequence:,} tokens holds"
        words.append(f"{held} {_verdict(memory, memory.serving)}")
    return words


def _verdict(memory: ModelMemory, used: int) -> str:
    if memory.limit is None:
        return human_bytes(used)
    if over := memory.over(used):
        return f"{human_bytes(used)}: does not fit, {human_bytes(over)} too much"
    return f"{human_bytes(used)}: fits, {human_bytes(memory.limit - used)} are free"


def memory_text(answer: ModelAnswer) -> str:
    """The same as plain text, with the model, the rules and the mesh, for the message of a test."""
    question = answer.question
    rules, mesh = question.split.rules.name, question.mesh
    head = f"{question.model.name} does not fit with the rules {rules} on the mesh {mesh}"
    lines = memory_lines(answer.memory, question, TEXT_WIDTH, PLAIN)
    return "\n".join([head, *(line.plain for line in lines)])
