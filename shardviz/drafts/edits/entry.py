"""Text into any field, in any notation; a whole command line replaces the whole problem."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from shardviz.drafts.draft import CollectiveDraft, Draft
from shardviz.drafts.edits.carrying import enter_einsum, enter_sizes
from shardviz.drafts.edits.mesh_axes import replace_mesh
from shardviz.drafts.edits.sharding_text import enter_sharding
from shardviz.drafts.plain_text import one_line
from shardviz.drafts.reader_errors import reader_errors
from shardviz.errors import ShardvizError


def enter(draft: Draft, field: str, text: str) -> Draft:
    """Put text into a field, named as `Fault.field` names it.

    What can be read is put into its usual form: a spec into a spec string, a dtype under its short name. What
    cannot stays as it is, but on one line and without characters that no terminal shows. A command line that
    begins with ``shardviz``, ``explain``, ``tui`` or ``step`` replaces the whole draft from any field.

    Raises `KeyError` for a field that no draft has.
    """
    from shardviz.drafts.lines import draft_from_line, looks_like_command

    text = one_line(text)
    name, _, number = field.partition(".")
    entered = partial(enter_sharding, row=int(number)) if name == "specs" else _ENTERED[name]
    try:
        with reader_errors():
            return draft_from_line(text, draft) if looks_like_command(text) else entered(draft, text=text)
    except ShardvizError:
        # It stays in the field, whose fault says what is wrong with it.
        return _typed(draft, field, text)


def _typed(draft: Draft, field: str, text: str) -> Draft:
    name, _, number = field.partition(".")
    if name == "specs":
        specs = list(draft.specs)
        specs[int(number)] = text
        return replace(draft, specs=tuple(specs))
    if name == "collective":
        return replace(draft, collective=CollectiveDraft(text))
    values: dict[str, Any] = {name: text}
    return replace(draft, **values)


def _enter_dtype(draft: Draft, text: str) -> Draft:
    from shardviz.sharding import canonical_dtype

    try:
        return replace(draft, dtype=canonical_dtype(text.strip()))
    except ShardvizError:
        return replace(draft, dtype=text)


def _enter_axis_types(draft: Draft, text: str) -> Draft:
    """``auto``, ``Explicit``, ``AxisType.Explicit`` or, one for each axis, ``(Auto, Auto)``."""
    words = {word.strip().rpartition(".")[2].lower() for word in text.strip("( ,)").split(",")}
    known = words.pop() if len(words) == 1 else ""
    return replace(draft, axis_types=known if known in ("auto", "explicit") else text)


def _enter_device_order(draft: Draft, text: str) -> Draft:
    from shardviz.drafts.parsing import mesh_of
    from shardviz.notation.mesh import ROW_MAJOR

    mesh = mesh_of(replace(draft, device_order=text))
    if text.strip().lower() == ROW_MAJOR:
        return replace(draft, device_order=ROW_MAJOR)
    if mesh is None or mesh.device_order is None:
        return replace(draft, device_order=text.strip())
    return replace(draft, device_order=",".join(map(str, mesh.device_order)))


def _enter_targets(draft: Draft, text: str) -> Draft:
    """Names with commas or blanks between them; ``none`` alone asks nobody."""
    from shardviz.compiler import parse_targets

    for written in (text, ",".join(text.replace(",", " ").split())):
        try:
            names = [target.name for target in parse_targets(written)]
        except ShardvizError:
            continue
        return replace(draft, targets=",".join(names) or "none")
    return replace(draft, targets=text)


def _enter_collective(draft: Draft, text: str) -> Draft:
    """The words of `shardviz step`; nothing leaves the player to the plan."""
    from shardviz.drafts.lines import collective_from_line

    if not text.strip():
        return replace(draft, collective=None)
    try:
        return collective_from_line(text, draft)
    except ShardvizError:
        return replace(draft, collective=CollectiveDraft(text))


_ENTERED = {
    "mesh": replace_mesh,
    "einsum": enter_einsum,
    "sizes": enter_sizes,
    "dtype": _enter_dtype,
    "axis_types": _enter_axis_types,
    "device_order": _enter_device_order,
    "targets": _enter_targets,
    "collective": _enter_collective,
}
