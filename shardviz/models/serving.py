"""Inference with a model: prefill, the forward pass of a prompt, and decoding, a step of which makes the next
token of every sequence of a batch ("How to Scale Your Model", part 7; Pope et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from shardviz.errors import QuestionError
from shardviz.hardware.chips import CHIPS
from shardviz.hardware.machine import PlacedMesh
from shardviz.models.answer import (
    ModelMemory,
    ModelQuestion,
    ModelStep,
    in_dtype,
    model_question,
    planned_step,
)
from shardviz.models.layer_program import CACHES, Tokens, architecture_of, cache_bytes
from shardviz.models.model import Model
from shardviz.models.rule_set import RuleSet
from shardviz.planner.plan import einsum_parts
from shardviz.planner.pricing.priced_plan import UNKNOWN, sums_of
from shardviz.sharding import Mesh, canonical_dtype

if TYPE_CHECKING:
    from shardviz.planner.search.mesh_choices import MeshSharding

MOST_BATCHES = 6
"""Rows of a table of batches, beside that of the question."""


@dataclass(frozen=True)
class DecodeStep:
    """A step that makes one token for each of `batch` sequences; a device holds `memory` bytes meanwhile."""

    batch: int
    devices: int
    memory: int
    step: ModelStep

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of all sequences in a second; None where a figure of the machine is missing."""
        return None if self.step.is_partial else self.batch / self.step.seconds

    @property
    def tokens_per_s_per_device(self) -> float | None:
        return None if self.tokens_per_s is None else self.tokens_per_s / self.devices

    @property
    def bound(self) -> str:
        """The bound of the steps that together take the most time; unknown where tokens per second are."""
        if self.step.is_partial:
            return UNKNOWN
        times = sums_of(
            (priced.bound, part.cost.layers * (priced.seconds or 0.0))
            for part in self.step.parts
            for priced in part.cost.steps
        )
        return max(times, key=times.__getitem__)


@dataclass(frozen=True)
class ServingAnswer:
    """The `decode` step of the batch and context that `question` has as its tokens, with keys and values in
    `cache_dtype`."""

    question: ModelQuestion
    cache_dtype: str
    decode: DecodeStep

    @cached_property
    def prefill(self) -> ModelStep:
        """The step of one prompt as long as the context for each shard of the batch."""
        return planned_step(replace(self.question, tokens=replace(self.question.tokens, batch=self.prompts)))

    @property
    def dropped(self) -> tuple[str, ...]:
        """Sentences on the choices of experts that are dropped."""
        return tuple(dict.fromkeys((*self.decode.step.dropped, *self.prefill.dropped)))

    @property
    def prompts(self) -> int:
        """The shards of the batch."""
        return self.question.mesh.group_size(self.question.tokens.spec.dims[0])

    @property
    def cache_bytes(self) -> int:
        """Bytes of one sequence's keys and values, which go from prefill to decoding on other devices."""
        return cache_bytes(self.question.split, self._tokens(1), per_device=False)

    def _tokens(self, batch: int) -> Tokens:
        return _decoding(self.question, batch, self.cache_dtype)

    @property
    def critical_batch(self) -> float | None:
        """The smallest batch whose matmuls take as long to compute as to read their weights, if known."""
        device = self.question.placed.machine.device
        read, flops, dtype = 0, 0.0, ""
        for part in self.decode.step.parts:
            kind, problem = part.part.kind, part.cost.plan.problem
            if kind is None:
                continue
            sizes = problem.sizes
            weights = {array.name for array in problem.arguments} - {"x", *CACHES[kind.mixer]}
            work = (priced for priced in part.cost.steps if priced.step.op in ("einsum", "apply"))
            for priced, (operands, _) in zip(work, einsum_parts(part.cost.plan), strict=True):
                own = [array for array in operands if array.name in weights and priced.step.op == "einsum"]
                if own:
                    held = sum(array.bytes_per_device(self.question.mesh) for array in own)
                    # Padding, and slots of experts that no token takes, are no sequences.
                    slots = any("c" in array.dims for array in operands)
                    room = float(sizes["b"])
                    if slots:
                        factor = min(self.question.tokens.load, default=1)
                        room = sizes["m"] * sizes["c"] * sizes["e"] / kind.experts_per_token / factor
                    read += problem.layers * held
                    flops, dtype = flops + problem.layers * priced.flops / room, priced.step.dtype
        peak, bandwidth = device.flops_per_second(dtype), device.hbm_bandwidth
        return None if not peak or not bandwidth else read / bandwidth * peak / flops

    @property
    def memory(self) -> ModelMemory:
        """Bytes of a device while it decodes."""
        device, weights = self.question.placed.machine.device, self.question.split.bytes_per_device
        kept, allocated = self.decode.memory - weights, self.question.placed.machine.allocated
        return ModelMemory(weights, 0, 0, kept, limit=device.limit_bytes, allocated=allocated)

    @property
    def largest_batch(self) -> int | None:
        """Sequences that fit beside the weights; None where the chip's memory is not known."""
        memory, mesh = self.memory, self.question.mesh
        if memory.limit is None:
            return None
        room = max(0, memory.limit - memory.parameters)
        # Devices that have too few heads share sequences, of a batch that divides among them.
        units = (self.prompts * many for many in range(1, mesh.size + 1) if mesh.size % many == 0)
        held = (
            (cache_bytes(self.question.split, self._tokens(unit), per_device=True), unit) for unit in units
        )
        return max(room // nbytes * unit for nbytes, unit in held)

    @property
    def fewest_devices(self) -> int | None:
        """Devices that hold one copy of the weights, and the cache of the batch; None as for the largest."""
        limit = self.question.placed.machine.device.limit_bytes
        whole = self.question.model.nbytes + self.decode.batch * self.cache_bytes
        return None if limit is None else -(-whole // limit)

    @property
    def smallest_machine(self) -> str:
        """The smallest slice, or GPUs, of the same chip with as many devices, a power of two, if known."""
        chip, least = CHIPS.get(self.question.placed.machine.chip), self.fewest_devices
        if chip is None or not least:
            return ""
        fits = (least - 1).bit_length()
        names = map(chip.names_of_size, (2**power for power in range(fits, fits + 2)))
        return next((name for of_size in names for name in of_size), "")

    @cached_property
    def batches(self) -> tuple[DecodeStep, ...]:
        """Decode steps of batches up to the largest that fits, that of the question among them."""
        most = max(self.largest_batch or 0, self.decode.batch)
        powers = [
            self.prompts * 2**power for power in range(most.bit_length()) if self.prompts << power <= most
        ]
        others = {*powers[:: max(1, -(-len(powers) // MOST_BATCHES))], most} - {self.decode.batch}
        steps = (_decoded(self.question, batch, self.cache_dtype) for batch in others)
        return tuple(sorted((*steps, self.decode), key=lambda step: step.batch))


class ServedMesh(NamedTuple):
    """A mesh that a search has found, with the answer for the whole model; `copies` of it have other names or
    another order of its axes."""

    found: MeshSharding
    answer: ServingAnswer
    copies: tuple[MeshSharding, ...] = ()


def serving_answer(
    model: Model,
    rules: RuleSet,
    placed: PlacedMesh,
    mesh: Mesh,
    *,
    dtype: str = "",
    cache: str = "",
    activations: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
    load: str | float = "",
) -> ServingAnswer:
    """The answer for `batch` sequences, each with a context of `sequence` tokens. Keys and values have the
    dtype of activations, unless another is given. Raises what `model_question` raises, and `QuestionError`
    for a model without a config or a longer context than it takes."""
    of = architecture_of(model)
    own = canonical_dtype(activations or of.dtype)
    model = in_dtype(model, dtype, own) if dtype else replace(model, architecture=replace(of, dtype=own))
    question = model_question(
        model, rules, placed, mesh, batch=batch, sequence=sequence, inputs=inputs, load=load
    )
    check_context(model, question.tokens.sequence)
    cached = canonical_dtype(cache or own)
    return ServingAnswer(question, cached, _decoded(question, question.tokens.batch, cached))


def check_context(model: Model, sequence: int) -> None:
    """Raise `QuestionError` for a longer context than a model takes."""
    most = architecture_of(model).positions
    if sequence > most:
        problem = f"{model.name} takes {most:,} tokens, a context has {sequence:,}"
        raise QuestionError(problem, f"give a sequence of {most:,} or fewer")


def _decoding(question: ModelQuestion, batch: int, dtype: str) -> Tokens:
    """Axes of the sequence split the cache along its positions."""
    return replace(question.tokens, batch=batch, decodes=True, cache_dtype=dtype)


def _decoded(question: ModelQuestion, batch: int, dtype: str) -> DecodeStep:
    tokens = _decoding(question, batch, dtype)
    memory = question.split.bytes_per_device + cache_bytes(question.split, tokens, per_device=True)
    return DecodeStep(batch, question.mesh.size, memory, planned_step(replace(question, tokens=tokens)))
