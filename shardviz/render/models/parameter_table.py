"""The parameters of a model with their splits, repeated layers as one, and what the rules leave out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.text import Text

from shardviz.errors import plural, quote
from shardviz.models.splitting import FoldedParameter, SplitModel, SplitParameter, folded
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.units import human_bytes, times

HEADINGS = ("parameter", "shape", "split", "a device", "", "×")
RIGHT = frozenset({4, 5})
SHOWN = 4
"""Parameters, or rules, that a sentence names."""
_LAYERS = re.compile(r"(.*?\d+[–,][\d–,]*\d)[./](.*)")


def parameter_lines(split: SplitModel, width: int, palette: Palette) -> list[Text]:
    """A row for each parameter, those of repeated layers below a heading, then what the rules leave out."""
    rows = [[Text(word, "dim") for word in HEADINGS]]
    for heading, group in layer_groups(folded(split.parameters)):
        if heading:
            rows.append(_heading_row(heading, group))
        rows += [parameter_cells(name, each, palette) for name, each in group]
    return [*table(rows, width, right=RIGHT), *rule_lines(split, width)]


Named = tuple[str, FoldedParameter]
"""A parameter by the name that it is shown with."""


def layer_groups(parameters: Iterable[FoldedParameter]) -> list[tuple[str, list[Named]]]:
    """The parameters in order, those in a row of the same layers under the name of these, which is "" for
    others."""

    def layers_of(each: FoldedParameter) -> str:
        match = _LAYERS.fullmatch(each.name)
        return "" if match is None else match[1]

    return [
        (layers, [(each.name[len(layers) + bool(layers) :], each) for each in group])
        for layers, group in groupby(parameters, layers_of)
    ]


def _heading_row(heading: str, group: Sequence[Named]) -> list[Text]:
    held = sum(each.bytes_per_device for _, each in group)
    count = max(each.count for _, each in group)
    return [
        Text(heading, "bold"),
        Text(f"× {count}", "bold"),
        Text(),
        Text(),
        Text(human_bytes(held), "bold"),
    ]


def parameter_cells(name: str, each: FoldedParameter, palette: Palette) -> list[Text]:
    """The cells of one parameter, of which a device's bytes are those of one layer."""
    first = each.first
    shown = name.removesuffix(".weight")
    is_of_layers = _LAYERS.fullmatch(each.name) is not None
    return [
        Text(f"{'  ' * is_of_layers}{shown}"),
        Text(times(first.parameter.shape)),
        split_text(first.spec, first.mesh, palette) if first.is_matched else Text("no rule", "italic"),
        Text(times(first.shard_shape)),
        Text(human_bytes(first.bytes_per_device)),
        Text(f"{first.replicas:,}"),
    ]


def split_text(spec: PartitionSpec, mesh: Mesh, palette: Palette) -> Text:
    """A spec string with its axes in their colours: ``tensor data``, ``(data tensor) _``."""
    entries = (f"({' '.join(axes)})" if len(axes) > 1 else "".join(axes) or "_" for axes in spec.dims)
    text = Text(" ".join(entries))
    position = 0
    for axis in spec.axes:
        position = text.plain.index(axis, position)
        text.stylize(palette.axis(mesh, axis), position, position + len(axis))
        position += len(axis)
    return text


def rule_lines(split: SplitModel, width: int) -> list[Text]:
    """The parameters that no rule matches, the rules that match nothing, and what does not divide."""
    lines: list[Text] = []
    if split.unmatched:
        words = f"{_names(split.unmatched)}; every device has all of it"
        lines += sentence(words, width, lead="no rule matches: ")
    if split.unused:
        shown = [f"{quote(each.subject)}{f' ({each.place})' if each.place else ''}" for each in split.unused]
        more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
        lines += sentence(f"{', '.join(shown[:SHOWN])}{more}", width, lead="rules that match nothing: ")
    for each in folded(split.uneven):
        lines += sentence(uneven_words(each), width, lead="does not divide: ")
    return lines


def uneven_words(each: FoldedParameter) -> str:
    """``lm_head.weight: 50,257 over tensor=4 is padded to 50,260; JAX refuses it …``."""
    first = each.first
    said = []
    for dim in first.uneven:
        axes = ", ".join(f"{axis}={first.mesh.axis_size(axis)}" for axis in first.spec.dims[dim.place])
        said.append(f"{dim.size:,} over {axes} is padded to {dim.padded:,}")
    hint = "jax.device_put refuses it: pad the parameter, or split another dimension"
    return f"{each.name}: {', '.join(said)}; {hint}"


def _names(parameters: Sequence[SplitParameter]) -> str:
    found = folded(parameters)
    more = f" and {plural(len(found) - SHOWN, 'more')}" if len(found) > SHOWN else ""
    return ", ".join(each.name for each in found[:SHOWN]) + more.replace("mores", "more")
