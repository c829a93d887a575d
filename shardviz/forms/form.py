"""The form of a problem: its fields, each declared once for every surface, their errors, undo and redo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

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


@dataclass(frozen=True)
class FormField:
    """A field on every surface; `name` is its key in Python, JSON, TOML and share strings.

    `flag`, `metavar` and `help` are those of its option; the command's argument has no flag. The application
    calls it `label`, shows `hint` while it is edited and `empty` where it has no text. `choices` are all its
    values, `usual` those that a key cycles through. `lead` stands before it in a summary. Fields of one
    `group` stand together.
    """

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


def _text(default: str, label: str, **words: Any) -> Any:
    return field(default=default, metadata={"label": label, **words})


def _fields(form: type) -> dict[str, FormField]:
    texts = [each for each in fields(form) if each.metadata]
    return {text.name: FormField(text.name, getattr(form, text.name), **text.metadata) for text in texts}


@dataclass(frozen=True)
class CollectiveFields:
    """A collective of its own, as the options of `shardviz step`; an empty field has its default.
    `parameters` are some of `parameter_names`, in their order, with their texts: ``(("perm",
    "(0,1),(1,2)"),)``."""

    op: str = _text("all_gather", "op", hint="all_gather, psum, psum_scatter, all_to_all, ppermute, …")
    axis: str = _text(
        "",
        "axis",
        flag="--axis",
        metavar="NAME,…",
        help="Mesh axes, the major one first; default: all of them.",
        hint="all axes of the mesh",
        lead="along ",
    )
    data: str = _text(
        "",
        "data",
        flag="--data",
        metavar="N,…",
        help="The whole array's numbers in rows; default: 0, 1, 2, and so on.",
        hint="0, 1, 2, …",
    )
    shape: str = _text(
        "",
        "shape",
        flag="--shape",
        metavar="NxN",
        help="The whole array's shape; default: one dimension.",
        hint="one dimension",
        lead="shape ",
    )
    spec: str = _text(
        "",
        "spec",
        flag="--spec",
        help="How it is split, in any notation; default: dimension 0 over all axes.",
        hint="dimension 0 over all axes",
        lead="split ",
    )
    dtype: str = _text(
        "",
        "dtype",
        flag="--dtype",
        help="Element type; default: s32 for whole numbers, f32 for others.",
        hint="s32, or f32 for fractions",
    )
    algorithm: str = _text(
        "",
        "algorithm",
        flag="--algorithm",
        metavar="NAME",
        help="ring, bruck, halving-doubling, …; --compare lists them.",
        hint="the usual one",
    )
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ProblemForm:
    """The texts in the fields of a problem, valid or not, so that nothing that is typed gets lost.

    `einsum` is an einsum, a chain of them with semicolons, or a product in the scaling book's notation
    without subscripts, which names the arrays: ``A[I, J] * B[J, K] -> C[I, K]``. `specs` has one text for
    each array, a spec string after a valid entry. Empty `sizes` are the defaults, an empty `device_order`
    leaves the order to JAX. `collective` is played instead of the plan's own collectives.
    """

    mesh: str = _text(
        "X=2,Y=4",
        "mesh",
        flag="--mesh",
        metavar="NAME=SIZE,…",
        help="Axes of the mesh.",
        hint="X=2,Y=4, or 2x4",
    )
    einsum: str = _text(
        "bd,df->bf", "einsum", hint="bd,df->bf; a chain ab,bc->ac;ac,cd->ad; A[I_X, J] * B[J, K]", group=1
    )
    specs: tuple[str, ...] = ("XY", "Y_", "X_")
    sizes: str = _text(
        "",
        "sizes",
        flag="--sizes",
        metavar="DIM=N,…",
        help="Sizes of dimensions: b=8,d=2k,f=4Ki; default: 1024, 2048, 8192, then 128.",
        hint="b=8,d=2048, or 8x2048,2048x8192; empty for the defaults",
        group=1,
    )
    dtype: str = _text(
        "bf16",
        "dtype",
        flag="--dtype",
        help="Element type, such as f32 or int8.",
        hint="bf16, f32, f16, f8e4m3fn, s8, …",
        group=1,
        usual=("bf16", "f32", "f16", "f8e4m3fn", "s8"),
    )
    axis_types: str = _text(
        "auto",
        "axes",
        flag="--axis-types",
        help="explicit: JAX's types carry the shardings.",
        hint="auto or explicit",
        group=3,
        choices=("auto", "explicit"),
        usual=("auto", "explicit"),
    )
    device_order: str = _text(
        "",
        "order",
        flag="--device-order",
        metavar="ID,…",
        help="Device ids in the mesh's order, or row-major; default: as jax.make_mesh has it.",
        hint="0,2,1,3, or row-major; empty for JAX's own",
        empty="JAX's own",
        lead="order ",
        group=3,
    )
    targets: str = _text(
        "shardy,cpu",
        "targets",
        flag="--target",
        help="Compilers to ask, comma-separated; none asks the planner only.",
        hint="shardy, cpu, v5e:2x4, h100:8, …",
        group=3,
    )
    machine: str = _text(
        "",
        "machine",
        flag="--machine",
        metavar="NAME",
        help="Hardware that times are for, or FILE.toml; default: the first such target, else v5e rings.",
        hint="v5p:4x4x8, h100:2x8, …, or a file; empty for the first target's",
        lead="on ",
        group=3,
    )
    objective: str = _text(
        "given",
        "plan",
        flag="--objective",
        help="What to minimise: time with the work divided as the arrays are (given), time, or bytes sent.",
        hint="given (time, with the work divided as the arrays are), time or bytes",
        lead="least ",
        group=3,
        choices=("given", "time", "bytes"),
        usual=("given", "time", "bytes"),
    )
    backward: str = _text(
        "no",
        "train",
        flag="--backward",
        help="Derive the gradients as well: a whole train step.",
        hint="yes or no",
        group=3,
        choices=YES_OR_NO,
        usual=YES_OR_NO,
    )
    remat: str = _text(
        "none",
        "remat",
        flag="--remat",
        help="With --backward: compute again all of a layer, all but its matrix products (dots), or nothing.",
        hint="none, layer or dots",
        lead="remat ",
        group=3,
        choices=("none", "layer", "dots"),
        usual=("none", "layer", "dots"),
    )
    optimizer: str = _text(
        "none",
        "optim",
        flag="--optimizer",
        metavar="NAME,…",
        help="With --backward: none, sgd or adam; adam,moments=bf16,over=X differs from f32 and splits more.",
        hint="none, sgd, adam, adam,moments=bf16,over=X",
        group=3,
        usual=("none", "sgd", "adam"),
    )
    collective: CollectiveFields | None = None


PROBLEM_FIELDS = _fields(ProblemForm)
COLLECTIVE_FIELDS = _fields(CollectiveFields)
SPECS = FormField("specs", "", "specs", "--specs", "SPECS", "How the arrays are split: 'XY,Y_->X_'.")
"""The option of all specs together; in a form each array has its own."""
TABLE_KEYS = tuple(dict.fromkeys(("mesh", "device_order", "einsum", "specs", *PROBLEM_FIELDS)))
"""The fields with one text each in a table in TOML and on a command line, in the order of options."""


@dataclass(frozen=True)
class ArrayRow:
    """One array of a form: place `place` (operands in order, then the result) of part `part`. `role` is
    "operand", "intermediate" (the result of the part before, of which the spec is a constraint) or
    "result"."""

    part: int
    place: int
    name: str
    dims: tuple[str, ...]
    role: str


@dataclass(frozen=True)
class FieldError:
    """An error in a field: "mesh", "einsum", "specs.0", "sizes", "dtype", "axis_types", "device_order",
    "objective", "backward", "remat", "optimizer", "targets", "machine" or "collective"."""

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
