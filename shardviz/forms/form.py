"""The form of a problem: its fields, each declared once for every surface, their errors, undo and redo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

SCREENS = ("layout", "plan", "step", "compiler", "time")
"""The screens that show a problem."""
OPEN = "?"
"""The spec of an array that the compiler may split as it likes."""
FLAG = "yes"
"""The value of a parameter or a field that says all by being there: `untiled`, ``--backward``."""
YES_OR_NO = ("no", FLAG)
"""The choices of such a field."""


def parameter_names() -> tuple[str, ...]:
    """Options of `shardviz step` that only some algorithms or operations take."""
    from shardviz.collectives.operations import PARAMETERS

    return ("pieces", *PARAMETERS)


class FormField(NamedTuple):
    """A field on every surface; `name` is its key in Python, JSON, TOML and share strings.

    `flag`, `metavar` and `help` are those of its option; the command's argument has no flag. The application
    calls it `label`, shows `hint` while it is edited and `empty` where it has no text. `choices` are all its
    values, `usual` those that a key cycles through. `lead` stands before it in a summary. Fields of one
    `group` stand together."""

    name: str
    default: str
    label: str
    flag: str = ""
    metavar: str | None = None
    help: str = ""
    hint: str = ""
    empty: str = "none"
    lead: str = ""
    group: int = 0
    choices: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()


def _fields(form: type, prefix: str = "") -> dict[str, FormField]:
    """The fields of a form that `fields.txt` describes: a name, and below it a line for each thing to say."""
    text = Path(__file__).with_name("fields.txt").read_text(encoding="utf-8")
    named = {
        section.split()[0]: section.splitlines()[1:] for section in re.split(r"^(?=\w)", text, flags=re.M)
    }
    form_fields = {}
    for name in (field.name for field in fields(form) if prefix + field.name in named):
        said = dict(line.split(maxsplit=1) for line in named[prefix + name])
        lead = f"{said.pop('lead')} " if "lead" in said else ""
        flag, _, metavar = said.pop("flag", "").partition(" ")
        choices = tuple(said.pop("choices", "").split())
        form_fields[name] = FormField(
            name,
            getattr(form, name),
            flag=flag,
            metavar=metavar or None,
            lead=lead,
            group=int(said.pop("group", 0)),
            choices=choices,
            usual=tuple(said.pop("usual", "").split()) or choices,
            **said,
        )
    return form_fields


@dataclass(frozen=True)
class CollectiveFields:
    """A collective of its own, as the options of `shardviz step`; an empty field has its default.
    `parameters` are some of `parameter_names`, in their order, with their texts: ``(("perm",
    "(0,1),(1,2)"),)``."""

    op: str = "all_gather"
    axis: str = ""
    data: str = ""
    shape: str = ""
    spec: str = ""
    dtype: str = ""
    algorithm: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ProblemForm:
    """The texts in the fields of a problem, valid or not, so that nothing that is typed gets lost.

    `einsum` is an einsum, a chain of them with semicolons, or a product in the scaling book's notation
    without subscripts, which names the arrays: ``A[I, J] * B[J, K] -> C[I, K]``. `specs` has one text for
    each array, a spec string after a valid entry. Empty `sizes` are the defaults, an empty `device_order`
    leaves the order to JAX. `collective` is played instead of the plan's own collectives."""

    mesh: str = "X=2,Y=4"
    einsum: str = "bd,df->bf"
    specs: tuple[str, ...] = ("XY", "Y_", "X_")
    sizes: str = ""
    dtype: str = "bf16"
    axis_types: str = "auto"
    device_order: str = ""
    targets: str = "shardy,cpu"
    machine: str = ""
    objective: str = "given"
    backward: str = "no"
    remat: str = "none"
    optimizer: str = "none"
    frozen: str = ""
    collective: CollectiveFields | None = None


PROBLEM_FIELDS = _fields(ProblemForm)
COLLECTIVE_FIELDS = _fields(CollectiveFields, "collective.")
SPECS = FormField("specs", "", "specs", "--specs", "SPECS", "Shardings of the arrays: 'XY,Y_->X_'.")
"""The option of all specs together; in a form each array has its own."""
TABLE_KEYS = tuple(dict.fromkeys(("mesh", "device_order", "einsum", "specs", *PROBLEM_FIELDS)))
"""The fields with one text each in a table in TOML and on a command line, in the order of options."""


class ArrayRow(NamedTuple):
    """One array of part `part` of a form. `role` is "operand", "intermediate" (the result of the part before,
    of which the spec is a constraint) or "result"."""

    part: int
    name: str
    dims: tuple[str, ...]
    role: str


class FieldError(NamedTuple):
    """An error in a field: "mesh", "einsum", "specs.0", "sizes", "dtype", "axis_types", "device_order",
    "objective", "backward", "remat", "optimizer", "frozen", "targets", "machine" or "collective"."""

    field: str
    message: str
    hint: str = ""


MAX_STEPS = 1000


class History:
    """Forms in the order in which they were made, and the place of the one on screen."""

    def __init__(
        self, draft: ProblemForm, before: Sequence[ProblemForm] = (), after: Sequence[ProblemForm] = ()
    ) -> None:
        self._drafts = [*before, draft, *after]
        self._place = len(before)

    @property
    def draft(self) -> ProblemForm:
        return self._drafts[self._place]

    @property
    def before(self) -> tuple[ProblemForm, ...]:
        """The forms to which undo goes back, the oldest first."""
        return tuple(self._drafts[: self._place])

    @property
    def after(self) -> tuple[ProblemForm, ...]:
        """The forms that were undone, the next one first."""
        return tuple(self._drafts[self._place + 1 :])

    def push(self, draft: ProblemForm) -> bool:
        """Go on from here with another draft; what was undone is gone. False where nothing has changed."""
        if draft == self.draft:
            return False
        self._drafts[self._place + 1 :] = [draft]
        del self._drafts[:-MAX_STEPS]
        self._place = len(self._drafts) - 1
        return True

    def undo(self) -> bool:
        """Go one draft back; False where there is none."""
        if not self._place:
            return False
        self._place -= 1
        return True

    def redo(self) -> bool:
        """Go one draft forward again; False where nothing was undone."""
        if self._place + 1 == len(self._drafts):
            return False
        self._place += 1
        return True


UNSHOWN = "\ufffd"
"""Stands for a character that moves the cursor, turns the writing round, or is none."""


def one_line(text: str) -> str:
    """The text with blanks for line breaks and tabs, and `UNSHOWN` for what cannot be shown. A backslash that
    continues a command line on the next one goes with the line break."""
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ").replace("\r\n", " ").strip("\r\n")
    return "".join(char if char.isprintable() else " " if char.isspace() else UNSHOWN for char in joined)
