"""Memory of a device for a whole model: what stays, and the most that a step holds beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.models.layer_program import spread
from shardviz.models.question import ModelQuestion
from shardviz.models.splitting import SplitParameter
from shardviz.planner.problem.training import Optimizer
from shardviz.planner.training.optimizer import state_spec
from shardviz.sharding import PartitionSpec, ShardedArray, array_bytes, shard_shape

if TYPE_CHECKING:
    from shardviz.models.step import ModelStep, PlannedPart


@dataclass(frozen=True)
class ModelMemory:
    """Bytes of a device.

    `gradients` are those of all parameters, in the optimizer's dtype, `optimizer` its state.
    `keys_and_values` are those of all tokens and layers, None where the heads are not known. `working` is the
    most that a step holds beside the parameters and the optimizer's state, gradients and activations among
    them; None where no step is planned. `activations` are what the layers keep for the backward pass. `limit`
    is what a program may use of the chip's memory, None where that is not known.
    """

    parameters: int
    gradients: int
    optimizer: int
    keys_and_values: int | None = None
    activations: int | None = None
    working: int | None = None
    limit: int | None = None

    @property
    def training(self) -> int:
        """All of a train step; without a planned step its activations are left out."""
        beside = self.gradients if self.working is None else max(self.working, self.gradients)
        return self.parameters + self.optimizer + beside

    @property
    def serving(self) -> int:
        """The parameters, and all keys and values."""
        return self.parameters + (self.keys_and_values or 0)

    def over(self, used: int) -> int:
        """The bytes that do not fit; 0 where all do, or where the limit is not known."""
        return 0 if self.limit is None else max(0, used - self.limit)


def model_memory(question: ModelQuestion, step: ModelStep | None = None) -> ModelMemory:
    """The memory of a model; with a planned step also what that holds."""
    training, parameters = question.training, question.split.parameters
    optimizer = None if training is None else training.optimizer
    device = question.placed.machine.device
    activations = None
    if step is not None and (kept := step.layer.cost.training_memory) is not None:
        activations = kept.activations
    return ModelMemory(
        parameters=question.split.bytes_per_device,
        gradients=0 if training is None else _gradient_bytes(parameters, optimizer),
        optimizer=0 if optimizer is None else sum(_state_bytes(each, optimizer) for each in parameters),
        keys_and_values=_cache_bytes(question),
        activations=activations,
        working=None if step is None else _working_bytes(step, optimizer),
        limit=device.hbm_bytes if device.usable_bytes is None else device.usable_bytes,
    )


def _gradient_bytes(parameters: Iterable[SplitParameter], optimizer: Optimizer | None) -> int:
    return sum(
        array_bytes(each.shard_shape, each.parameter.dtype if optimizer is None else optimizer.gradients)
        for each in parameters
    )


def _state_bytes(each: SplitParameter, optimizer: Optimizer) -> int:
    """Bytes of a master copy, where there is one, and of the moments, as `optimizer_statements` splits
    them."""
    parameter = each.parameter
    dims = tuple(f"d{place}" for place in range(len(parameter.shape)))
    array = ShardedArray(parameter.name, dims, parameter.shape, parameter.dtype, each.spec)
    shard = shard_shape(parameter.shape, state_spec(array, optimizer.over, each.mesh), each.mesh)
    dtypes = [optimizer.master] if optimizer.master not in ("", parameter.dtype) else []
    dtypes += [optimizer.moments] * 2 if optimizer.rule == "adam" else []
    return sum(array_bytes(shard, dtype) for dtype in dtypes)


def _cache_bytes(question: ModelQuestion) -> int | None:
    """Bytes of the keys and values of all layers for all tokens; heads are split as the keys' weight is."""
    of, tokens = question.model.architecture, question.tokens
    if of is None:
        return None
    own = (
        each for each in question.split.parameters if {"kv_heads", "qkv"}.intersection(each.parameter.dims)
    )
    weight = next(own, None)
    heads: tuple[str, ...] = ()
    if weight is not None:
        place = next(i for i, dim in enumerate(weight.parameter.dims) if dim in ("kv_heads", "qkv"))
        heads = spread(weight.spec.dims[place], [of.kv_heads, of.head_size], question.mesh)[0]
    free = tuple(axis for axis in heads if axis.partition(":")[0] not in tokens.spec.axes)
    spec = PartitionSpec((*tokens.spec.dims, free, ()))
    shape = (tokens.batch, tokens.sequence, of.kv_heads, of.head_size)
    return 2 * of.layers * array_bytes(shard_shape(shape, spec, question.mesh), of.dtype)


def _working_bytes(step: ModelStep, optimizer: Optimizer | None) -> int:
    """The most that any part holds beside its own parameters and their state, with what is left of the others
    at that time: forward and backward the activations of the layers before it, then the gradients of those
    behind it, whose backward pass comes first."""
    most = 0
    for place, each in enumerate(step.parts):
        kept = sum(
            before.cost.training_memory.activations
            for before in step.parts[:place]
            if before.cost.training_memory is not None
        )
        is_trained = each.cost.training_memory is not None
        behind = sum(_gradient_bytes(after.part.parameters, optimizer) for after in step.parts[place + 1 :])
        most = max(most, _beside(each) + kept + (behind if is_trained else 0))
    return most


def _beside(each: PlannedPart) -> int:
    """The most that the runs of a part hold beside the parameters and the optimizer's state."""
    cost = each.cost
    if (memory := cost.training_memory) is not None:
        return memory.peak - memory.parameters - memory.optimizer
    problem = cost.plan.problem
    own = sum(
        array.bytes_per_device(problem.mesh)
        for array in problem.arguments
        if array.name not in ("x", "tokens")
    )
    return cost.layers_peak_bytes - cost.layers * own
