"""The choices of a train step: what is kept for the backward pass, and the optimizer with its dtypes."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from shardviz.errors import NotationError, QuestionError, listed, quote
from shardviz.sharding import Mesh, canonical_dtype

Remat = Literal["none", "layer", "dots"]
"""The results of forward statements that the backward pass computes again: none of them; all but the layer's
arguments (`jax.checkpoint`); all but those of matrix products (its policy `dots_saveable`)."""
Rule = Literal["sgd", "adam"]
REMATS: tuple[Remat, ...] = get_args(Remat)
RULES: tuple[Rule, ...] = get_args(Rule)
_KEYS = ("master", "moments", "gradients", "over")


class Optimizer(NamedTuple):
    """The update of the parameters at the end of a train step, with dtypes as `canonical_dtype` gives them.

    A parameter of another dtype than `master` has a copy in it, to which the updates are added; "" is none.
    Adam has two `moments` for each parameter (Kingma and Ba 2015). The weights' gradients are computed and
    reduced in `gradients`. The state is split as its parameter is, and over the mesh axes `over`, as ZeRO's
    first stage does (Rajbhandari and others 2020)."""

    rule: Rule
    master: str = "f32"
    moments: str = "f32"
    gradients: str = "f32"
    over: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As `parse_optimizer` reads it, without what is usual."""
        own, usual = self._asdict(), Optimizer(self.rule)._asdict()
        words = [f"{key}={own[key] or 'none'}" for key in _KEYS[:3] if own[key] != usual[key]]
        return ",".join([self.rule, *words, *(f"over={axis}" for axis in self.over)])

    def state_dtypes(self, dtype: str) -> tuple[str, ...]:
        """The dtypes of a parameter's state: of a master copy, where there is one, and of the moments."""
        master = (self.master,) if self.master not in ("", dtype) else ()
        return master + (self.moments,) * (2 if self.rule == "adam" else 0)


class Training(NamedTuple):
    """A train step: what its backward pass computes again, and its optimizer, if it has one: without, the
    gradients are returned, in the dtypes of their parameters, as by `jax.grad`. The arguments that are
    `frozen` have no gradients."""

    remat: Remat = "none"
    optimizer: Optimizer | None = None
    frozen: tuple[str, ...] = ()


def parse_training(
    backward: bool, remat: str, optimizer: str, mesh: Mesh, frozen: str | None = ""
) -> Training | None:
    """The choices in the words of the command line; None for the forward pass alone. Raises `QuestionError`
    for other words, and for choices about a backward pass that is not asked for."""
    if not backward:
        for name, text in (("remat", remat), ("optimizer", optimizer), ("frozen", frozen or "")):
            if text.strip() not in ("", "none"):
                raise QuestionError(f"--{name} needs a train step", "add --backward")
        return None
    return Training(parse_remat(remat), parse_optimizer(optimizer, mesh), parse_frozen(frozen or ""))


def parse_frozen(text: str) -> tuple[str, ...]:
    """Read the names of arrays: ``W1,W2``; an empty text and ``none`` are none."""
    return tuple(dict.fromkeys(name for name, _ in listed(text) if name not in ("", "none")))


def parse_remat(text: str) -> Remat:
    """One of `REMATS`. Raises `QuestionError` for another word."""
    for remat in REMATS:
        if text.strip() == remat:
            return remat
    problem = f"{quote(text)} is not a remat policy"
    raise QuestionError(problem, f"choose {', '.join(REMATS[:-1])} or {REMATS[-1]}")


def parse_optimizer(text: str, mesh: Mesh) -> Optimizer | None:
    """Read ``none``, ``sgd``, ``adam``, or ``adam,master=none,moments=bf16,gradients=bf16,over=data``, `over`
    perhaps several times. Raises `NotationError`."""
    if text.strip() in ("", "none"):
        return None
    dtypes: dict[str, str] = {}
    over: list[str] = []
    rule: Rule | None = None
    for word, start in listed(text):
        key, equals, value = (part.strip() for part in word.partition("="))
        if rule is None:
            rule = next((candidate for candidate in RULES if candidate == word), None)
            if rule is None:
                raise _error(f"{quote(word)} is not an optimizer", text, start, word)
        elif (
            not equals or key not in _KEYS or not value or key in dtypes or (rule, key) == ("sgd", "moments")
        ):
            raise _error(f"{quote(word)} does not apply to {rule}", text, start, word)
        elif key == "over":
            if value not in mesh.axis_names or value in over:
                problem = "is named twice" if value in over else "is not an axis of the mesh"
                raise _error(f"{quote(value)} {problem}", text, start, word)
            over.append(value)
        else:
            try:
                dtypes[key] = "" if value == "none" and key == "master" else canonical_dtype(value)
            except QuestionError as error:
                raise _error(error.message, text, start, word) from None
    assert rule is not None
    return Optimizer(rule, **dtypes, over=tuple(over))


def _error(problem: str, text: str, start: int, word: str) -> NotationError:
    hint = "write adam, sgd or none, then its options: adam,moments=bf16,gradients=bf16,master=none,over=X"
    return NotationError(f"{problem},", text, start, start + max(1, len(word)), hint)
