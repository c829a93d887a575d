"""A draft as the words of a command line that asks the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import chain
from typing import Literal

from shardviz.drafts.book_text import split_product
from shardviz.drafts.draft import FLAG, CollectiveDraft, Draft
from shardviz.drafts.edits.carrying import sizes_text
from shardviz.drafts.parsing import einsums_of, mesh_of, sizes_of, spec_texts, specs_of
from shardviz.drafts.rows import Einsums

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def command_line(draft: Draft, command: Literal["explain", "tui", "step"] = "explain") -> str:
    """``shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_'``, to be pasted into a shell."""
    return shlex.join(["shardviz", *words(draft, command)])


def words(draft: Draft, command: Literal["explain", "tui", "step"] = "explain") -> list[str]:
    """The words after ``shardviz``, without options that say what they say by themselves.

    ``step`` takes the draft's collective; raises `ValueError` where it has none. Fields with faults stand as
    they are: the command says what is wrong with them.
    """
    if command == "step":
        if draft.collective is None:
            raise ValueError("the draft has no collective of its own")
        return ["step", *_collective_words(draft.mesh, draft.collective)]
    usual = Draft()
    einsum, specs, sizes = _problem_texts(draft)
    options = {
        "mesh": (draft.mesh, usual.mesh),
        "device-order": (draft.device_order.strip(), ""),
        "specs": (specs, ""),
        "sizes": (sizes, ""),
        "dtype": (draft.dtype, usual.dtype),
        "axis-types": (draft.axis_types, usual.axis_types),
        "target": (draft.targets, usual.targets),
    }
    given = [(f"--{name}", text) for name, (text, default) in options.items() if text != default]
    return [command, einsum, *chain(*given)]


def _collective_words(mesh: str, collective: CollectiveDraft) -> list[str]:
    found = [collective.op]
    options = {
        "mesh": "" if mesh == Draft().mesh else mesh,
        "axis": collective.axis,
        "data": collective.data,
        "shape": collective.shape,
        "spec": collective.spec,
        "dtype": collective.dtype,
        "algorithm": collective.algorithm,
    }
    for name, text in (*options.items(), *collective.parameters):
        flag = f"--{name.replace('_', '-')}"
        if name == "untiled" and text == FLAG:
            found.append(flag)
        elif text.startswith("-"):
            found.append(f"{flag}={text}")
        elif text:
            found += [flag, text]
    return found


def _problem_texts(draft: Draft) -> tuple[str, str, str]:
    """Einsum, specs and sizes; a product has its specs in subscripts, unless it cannot say them all."""
    mesh = mesh_of(draft)
    einsums = einsums_of(draft, mesh)
    if mesh is None or einsums is None or len(einsums.rows) != len(draft.specs):
        return draft.einsum, _joined(draft.specs), draft.sizes
    specs = specs_of(draft, mesh, einsums)
    written = spec_texts(specs)
    if einsums.product is None:
        return draft.einsum, _joined(written, einsums), draft.sizes
    decided = [spec for spec in specs if not isinstance(spec, str)]
    product = split_product(einsums, decided, mesh.axis_names) if len(decided) == len(specs) else None
    if product is not None:
        return "".join(piece.text for piece in product), "", draft.sizes
    letters = _letters(einsums)
    sizes = sizes_of(draft)
    renamed = draft.sizes if sizes is None else sizes_text({letters.get(d, d): n for d, n in sizes.items()})
    return _in_letters(einsums, letters), _joined(written, einsums), renamed


def _joined(specs: tuple[str, ...], einsums: Einsums | None = None) -> str:
    """The specs of all rows as ``--specs`` takes them; a last result that is open is left out."""
    if einsums is None:
        return f"{','.join(specs[:-1])}->{specs[-1]}" if len(specs) > 1 else "".join(specs)
    parts = []
    for operands, result in einsums.places:
        text = ",".join(specs[place] for place in operands)
        parts.append(text if specs[result] == "?" else f"{text}->{specs[result]}")
    return "; ".join(parts)


def _letters(einsums: Einsums) -> Mapping[str, str]:
    """A letter for each dimension: its own where it is one."""
    taken = {dim for dim in einsums.dims if len(dim) == 1}
    free = iter([letter for letter in LETTERS if letter not in taken])
    return {dim: dim if len(dim) == 1 else next(free, dim) for dim in einsums.dims}


def _in_letters(einsums: Einsums, letters: Mapping[str, str]) -> str:
    from shardviz.notation import Einsum

    def renamed(dims: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(letters[dim] for dim in dims)

    parts = [Einsum(tuple(map(renamed, part.operands)), renamed(part.result)) for part in einsums.parts]
    return "; ".join(map(str, parts))
