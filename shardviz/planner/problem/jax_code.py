"""The JAX code of a statement: the same that the child compiles and that exported programs run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_letters

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement, places_dim
from shardviz.sharding.array import jax_name


def dtype_code(dtype: str) -> str:
    """``jnp.bfloat16`` for HLO's ``bf16``."""
    return f"jnp.{jax_name(dtype)}"


@dataclass(frozen=True)
class LocalDims:
    """The dimensions of a statement as one device works on them, empty for a program of whole arrays: along
    those which are split its elements `sizes`, an expression of the first of them, `starts`, and of the
    `groups` of devices that split them the axes, and the pairs of each but the last with the next."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, str]] = field(default_factory=dict)


WHOLE = LocalDims()


@dataclass(frozen=True)
class JaxCode:
    """The expression of a statement's result from those of its operands, a method for each kind of function.
    `out_sharding` is an expression of what an einsum is told of its result."""

    statement: Statement
    operands: tuple[str, ...]
    out_sharding: str = ""
    local: LocalDims = WHOLE

    @property
    def einsum(self) -> Einsum:
        return self.statement.einsum

    @property
    def sizes(self) -> dict[str, int]:
        """Elements along each dimension, as the device has them."""
        return self.statement.sizes | dict(self.local.sizes)

    def product(self) -> str:
        known = {dim for dims in self.einsum.operands for dim in dims}
        made = tuple(dim for dim in self.einsum.result if dim in known)
        every = tuple(dict.fromkeys((*self.einsum.dims, *self.einsum.result)))
        is_told = self.out_sharding and made == self.einsum.result
        told = f", out_sharding={self.out_sharding}" if is_told else ""
        letters = _subscripts(every, self.einsum.operands, made)
        return self._ordered(f'jnp.einsum("{letters}", {", ".join(self.operands)}{told})', made)

    def pointwise(self, code: str, averages: bool) -> str:
        """A function at every point, added up or averaged over the dimensions that the result lacks."""
        part = self.statement
        every = max(part.einsum.operands, key=len)
        aligned = map(_aligned, self.operands, part.einsum.operands, (every,) * len(self.operands))
        code = code.format(*aligned, number=part.number)
        kept = tuple(dim for dim in every if dim in part.einsum.result)
        lost = tuple(dim for dim in every if dim not in part.einsum.result)
        if lost:
            axes = _axes(every, lost)
            if not averages:
                code = f"jnp.sum({code}, axis={axes})"
            elif not self.local.starts.keys() & {*lost}:
                code = f"jnp.mean({code}, axis={axes})"
            else:
                whole = dict(zip(every, part.operands[part.einsum.operands.index(every)].shape, strict=True))
                code = f"jnp.sum({code}, axis={axes}) / {math.prod(whole[dim] for dim in lost)}"
        return self._ordered(code, kept)

    def _ordered(self, code: str, dims: tuple[str, ...]) -> str:
        """An expression whose value has some dimensions, with those of the result in their order."""
        wanted = self.einsum.result
        if dims == wanted:
            return code
        if {*dims} == {*wanted}:
            return f"jnp.transpose({code}, {tuple(dims.index(dim) for dim in wanted)})"
        shape = tuple(self.sizes[dim] for dim in wanted)
        return f"jnp.broadcast_to({_aligned(f'({code})', dims, wanted)}, {shape})"

    def largest(self) -> str:
        (dims,), (array,) = self.einsum.operands, self.operands
        lost = tuple(dim for dim in dims if dim not in self.einsum.result)
        kept = tuple(dim for dim in dims if dim not in lost)
        return self._ordered(f"jnp.max({array}, axis={_axes(dims, lost)})", kept)

    def reshape(self) -> str:
        """The operand with the result's dimensions, some merged from or split into others."""
        (array,), sizes = self.operands, self.sizes
        return f"jnp.reshape({array}, {tuple(sizes[dim] for dim in self.einsum.result)})"

    def slice(self) -> str:
        """The elements of a dimension from a number on as another; zeros where there are none."""
        (dims,), (array,), made = self.einsum.operands, self.operands, self.einsum.result
        old, new = next(dim for dim in dims if dim not in made), next(dim for dim in made if dim not in dims)
        axis, count, start = dims.index(old), self.sizes[new], int(self.statement.number or 0)
        if {old, new} & self.local.starts.keys():
            code = self._shifted(array, axis, old, new, start)
        elif start >= 0:
            code = f"{array}[{':, ' * axis}{start} : {start + count}]"
        else:
            around = [(-start, count + start - self.sizes[old]) if dim == old else (0, 0) for dim in dims]
            code = f"jnp.pad({array}, {around})"
        return self._ordered(code, tuple(new if dim == old else dim for dim in dims))

    def _shifted(self, array: str, axis: int, old: str, new: str, start: int) -> str:
        """Of an array of which the device has a part, the elements of a dimension from a number on that stand
        in its part of another; zeros for all others."""
        before = self.local.starts.get(old)
        places = f"{self._places(new)} + {start}" + (f" - {before}" if before else "")
        places = f"jnp.where({places} < 0, {self.sizes[old]}, {places})"
        return f'jnp.take({array}, {places}, axis={axis}, mode="fill", fill_value=0)'

    def _places(self, dim: str) -> str:
        """The numbers of the elements along a dimension."""
        numbers, start = f"jnp.arange({self.sizes[dim]})", self.local.starts.get(dim)
        return f"({start} + {numbers})" if start else numbers

    def concatenate(self) -> str:
        """Several arrays, one behind the other; of a part of the result its elements."""
        every, whole, along = self.einsum.operands, self.statement.whole, self.statement.along
        order = tuple(along if dim == whole[0] else dim for dim in every[0])
        own = (tuple(dim if name == along else name for name in order) for dim in whole)
        arrays = ", ".join(map(_aligned, self.operands, every, own))
        code = f"jnp.concatenate(({arrays}), axis={order.index(along)})"
        if along in self.local.starts:
            code = f"jnp.take({code}, {self._places(along)}, axis={order.index(along)})"
        return self._ordered(code, order)

    def update(self) -> str:
        """An array with new rows in the place of its last ones."""
        (dims, new_dims), (array, new), along = self.einsum.operands, self.operands, self.statement.along
        (rows,), axis = self.statement.whole, dims.index(along)
        new = _aligned(new, new_dims, tuple(rows if dim == along else dim for dim in dims))
        start = self.statement.operands[0].shape[axis] - self.sizes[rows]
        if along not in self.local.starts:
            code = f"jax.lax.dynamic_update_slice_in_dim({array}, {new}, {start}, {axis})"
            return self._ordered(code, dims)
        shifted = self._shifted(new, axis, rows, along, -start)
        return self._ordered(f"jnp.where({self._is_before(start, dims)}, {array}, {shifted})", dims)

    def update_gradient(self) -> str:
        (dims,), (array,), start = self.einsum.operands, self.operands, int(self.statement.number or 0)
        return self._ordered(f"jnp.where({self._is_before(start, dims)}, {array}, 0)", dims)

    def _is_before(self, stop: int, dims: tuple[str, ...]) -> str:
        """A comparison of the elements' places along the statement's dimension with one of them."""
        along = self.statement.along
        return f"{_aligned(self._places(along), (along,), dims)} < {stop}"

    def take(self) -> str:
        """The rows of a table at some places; of a part of the table zeros for all other rows."""
        (table, places), (rows, _) = self.operands, self.einsum.operands
        made = (*self.einsum.operands[1], *rows[1:])
        start = self.local.starts.get(rows[0])
        if start is None:
            return self._ordered(f"jnp.take({table}, {places}, axis=0)", made)
        # A place outside of the part is one that `jnp.take` fills with zeros; below 0 it counts from the end.
        size = self.sizes[rows[0]]
        own = f"jnp.where({places} < {start}, {size}, {places} - {start})"
        return self._ordered(f'jnp.take({table}, {own}, axis=0, mode="fill", fill_value=0)', made)

    def pick(self) -> str:
        """Of each row the element at a place; zero where the device has not got it."""
        dims, array = self.einsum.operands[0], self.operands[0]
        is_picked, axis = self._picked(dims)
        kept = tuple(dim for dim in dims if dim != dims[axis])
        return self._ordered(f"jnp.sum(jnp.where({is_picked}, {array}, 0), axis={axis})", kept)

    def pick_gradient(self) -> str:
        """The gradients, each at its place in a row of zeros."""
        is_picked, _ = self._picked(self.einsum.result)
        given = _aligned(self.operands[0], self.einsum.operands[0], self.einsum.result)
        return f"jnp.where({is_picked}, {given}, 0)"

    def _picked(self, dims: tuple[str, ...]) -> tuple[str, int]:
        """A comparison of the places with the numbers of elements along rows, and the rows' dimension."""
        (axis,) = (n for n, dim in enumerate(dims) if dim not in self.einsum.operands[1])
        places = _aligned(self.operands[1], self.einsum.operands[1], dims)
        return f"{places} == {_aligned(self._places(dims[axis]), (dims[axis],), dims)}", axis

    def attention(self) -> str:
        """The values, averaged by the softmax of how the queries fit the keys."""
        (query, keys, values, *_), sizes = self.einsum.operands, self.sizes
        along, size, *others = self.statement.whole
        rows = query[keys.index(along)]
        scores = (*(dim for dim in query if dim not in (rows, size)), rows, along)
        halo, arrays = 0, [*self.operands]
        if self.statement.number and along in self.local.groups:
            halo = int(self.statement.number) - 1
        if halo:
            for number, dims in ((1, keys), (2, values)):
                arrays[number] = self._behind_halo(arrays[number], dims.index(along), along, halo)
        every = tuple(dict.fromkeys(dim for dims in self.einsum.operands for dim in dims))
        fits = [
            _einsum(every, self.einsum.operands[pair], scores, *arrays[pair])
            for pair in (slice(2), slice(3, 5))[: (len(self.operands) - 1) // 2]
        ]
        total = sum(sizes[dim] for dim in (size, *others))
        fit = f"{fits[0] if len(fits) == 1 else f'({fits[0]} + {fits[1]})'} / {total} ** 0.5"
        if cap := self.statement.limit:
            fit = f"{cap} * jnp.tanh({fit} / {cap})"
        if not self.statement.function.startswith("attention"):
            place, key = f"{self._places(rows)}[:, None]", self._places(along)
            seen = f"jnp.tri({sizes[rows]}, {sizes[along]}, dtype=bool)"
            if halo:
                key = f"({self.local.starts[along]} - {halo} + jnp.arange({sizes[along] + halo}))"
            if self.local.starts.keys() & {rows, along}:
                seen = f"({place} >= {key})" + f" & ({key} >= 0)" * (halo > 0)
            if window := self.statement.number:
                seen = f"({seen}) & ({place} < {key} + {window:.0f})"
            fit = f"jnp.where({seen}, {fit}, -jnp.inf)"
        weights, row = f"jax.nn.softmax({fit}, axis=-1)", "jax.nn.logsumexp(fit, -1)"
        is_shared = along in self.local.groups and not self.statement.number
        has_sinks = len(self.operands) % 2 == 0
        if is_shared:
            # Each device has a part of every row: its exponentials are divided by the sum of all.
            row = f"jax.nn.logsumexp(jax.lax.all_gather({row}, {self.local.groups[along][0]}), 0)"
        if has_sinks:
            sinks = _aligned(self.operands[-1], self.einsum.operands[-1], scores[:-1])
            row = f"jnp.logaddexp({row}, {sinks})"
        if is_shared or has_sinks:
            weights = f"(lambda fit: jnp.exp(fit - {row}[..., None]))({fit})"
        return _einsum(every, (scores, values), self.einsum.result, weights, arrays[2])

    def _behind_halo(self, array: str, axis: int, along: str, rows: int) -> str:
        """An array with so many positions before its first, from the device before; zeros on the first."""
        over, pairs = self.local.groups[along]
        last = f"{array}[{':, ' * axis}{self.sizes[along] - rows} :]"
        return f"jnp.concatenate((jax.lax.ppermute({last}, {over}, {pairs}), {array}), axis={axis})"

    def top_k(self) -> str:
        """The largest elements along a dimension, and zero for all others."""
        (dims,), (array,) = self.einsum.operands, self.operands
        axis, count = dims.index(self.statement.whole[0]), int(self.statement.number or 1)
        # Of equal elements `jax.lax.top_k` keeps the first; it works along the last dimension.
        last = f"jnp.moveaxis({array}, {axis}, -1)" if axis != len(dims) - 1 else array
        kept = f"jax.nn.one_hot(jax.lax.top_k({last}, {count})[1], {self.sizes[dims[axis]]}).any(-2)"
        if axis != len(dims) - 1:
            kept = f"jnp.moveaxis({kept}, -1, {axis})"
        return self._ordered(f"jnp.where({kept}, {array}, 0)", dims)

    def slots(self) -> str:
        """1 where a token has a place, in the order of those that are positive along a dimension."""
        (dims,), made = self.einsum.operands, places_dim(self.einsum)
        return self._ordered(self._slots(dims, made), (*dims, made))

    def _slots(self, dims: tuple[str, ...], made: str) -> str:
        """The slots of the last operand, whose dimensions these are, with those that are `made` behind."""
        chosen, axis = f"({self.operands[-1]} > 0)", dims.index(self.statement.along)
        place = f"jnp.where({chosen}, jnp.cumsum({chosen}, axis={axis}) - 1, -1)"
        if start := self.local.starts.get(made):
            place = f"{place} - {start}"
        dtype = dtype_code(self.statement.result.dtype)
        return f"jax.nn.one_hot({place}, {self.sizes[made]}, dtype={dtype})"

    def dispatch(self, *, is_weighted: bool = False) -> str:
        """The rows of tokens in the slots of their experts, or the other way round."""
        dims, made = [*self.einsum.operands], places_dim(self.einsum)
        arrays = [*self.operands[:-1], self._slots(dims[-1], made)]
        taken = [*dims[:-1], (*dims[-1], made)]
        if is_weighted:
            arrays, taken = [*arrays, self.operands[-1]], [*taken, dims[-1]]
        return _einsum(self.einsum.dims, taken, self.einsum.result, *arrays)

    def combine(self) -> str:
        """The rows in the slots of experts, added up for each token by its shares."""
        return self.dispatch(is_weighted=True)

    def take_gradient(self) -> str:
        """The gradients of rows, added up at their places in a table of zeros; what is outside is dropped."""
        (gradient, places), (dims, kept) = self.operands, self.einsum.operands
        rows, *rest = self.einsum.result
        size = self.sizes[rows]
        if start := self.local.starts.get(rows):
            places = f"jnp.where({places} < {start}, {size}, {places} - {start})"
        zeros = f"jnp.zeros({(size, *(self.sizes[dim] for dim in rest))}, {gradient}.dtype)"
        return f'{zeros}.at[{places}].add({_aligned(gradient, dims, (*kept, *rest))}, mode="drop")'

    def gradient(self, code: Callable[[JaxCode], str], operand: int, taken: Sequence[int]) -> str:
        """The gradient of one operand of a function with this code, from that of its result and the operands
        that are `taken`. One that is not there is the function's linear one: any value of it does."""
        (given, *dims), (made, *arrays) = self.einsum.operands, self.statement.operands
        gradient, *names = self.operands
        known = dict(zip(taken, zip(dims, arrays, names, strict=True), strict=True))
        own_dims, own_array, own = known.get(operand, (given, made, gradient))
        known[operand] = own_dims, own_array, "own"
        every = [known[number] for number in sorted(known)]
        einsum = Einsum(tuple(dims for dims, _, _ in every), given)
        arrays = [array for _, array, _ in every]
        forward = replace(self.statement, einsum=einsum, operands=tuple(arrays), result=made)
        forward_code = code(JaxCode(forward, tuple(name for _, _, name in every), local=self.local))
        return self._ordered(f"jax.vjp(lambda own: {forward_code}, {own})[1]({gradient})[0]", own_dims)

    def rotary(self) -> str:
        """The halves of the last dimension turned by angles that grow with the position."""
        (dims,), (array,), sizes = self.einsum.operands, self.operands, self.sizes
        along, (last,) = self.statement.along, self.statement.whole
        half = sizes[last] // 2
        turns = f"{self.statement.number} ** -(jnp.arange({sizes[last]}) % {half} / {half})"
        signs = f"jnp.where(jnp.arange({sizes[last]}) < {half}, -1, 1)"
        angles = _aligned(f"({self._places(along)}[:, None] * ({signs} * {turns}))", (along, last), dims)
        other = f"jnp.roll({array}, {half}, {dims.index(last)})"
        code = f"({array} * jnp.cos({angles}) + {other} * jnp.sin({angles})).astype({array}.dtype)"
        return self._ordered(code, dims)

    def cumsum(self) -> str:
        (dims,), (array,) = self.einsum.operands, self.operands
        axis = dims.index(self.statement.along)
        return self._ordered(f"jnp.cumsum({array}, axis={axis}, dtype={array}.dtype)", dims)

    def scan(self) -> str:
        """Each state is the one before times a factor, plus what comes in; the first has none before."""
        dims = self.einsum.operands[1]
        return self._ordered(self._states(self.operands[1], dims), dims)

    def linear_attention(self) -> str:
        """States to which keys times values come in, read by queries: no score is ever made."""
        (_, query, keys, values), (_, *arrays) = self.einsum.operands, self.operands
        dims = (*values, *(dim for dim in keys if dim not in values))
        states = self._states(_einsum(dims, (keys, values), dims, *arrays[1:]), dims)
        return _einsum(dims, (query, dims), self.einsum.result, arrays[0], states)

    def delta_rule(self) -> str:
        """States from which what a key finds is taken before its value is written, read by queries (Yang and
        others 2024, https://arxiv.org/abs/2412.06464)."""
        *every, along = *self.einsum.operands, self.statement.along
        dims = [tuple(dim for dim in own if dim != along) for own in every]
        moved = [
            f"jnp.moveaxis({array}, {own.index(along)}, 0)"
            for array, own in zip(self.operands, every, strict=True)
        ]
        _, _, query, key, value = dims
        state = (*value, *(dim for dim in key if dim not in value))
        names = [f"at[{number}]" for number in range(5)]
        new = self._written([state, *dims[:2], key, value], ["state", *names[:2], *names[3:]])
        read = _einsum(state, (query, state), value, "at[2]", "new")
        first = f"0 * {_einsum(state, (key, value), state, f'{moved[3]}[0]', f'{moved[4]}[0]')}"
        step = f"lambda state, at: (lambda new: (new, {read}))({new})"
        return self._ordered(f"jax.lax.scan({step}, {first}, ({', '.join(moved)}))[1]", (along, *value))

    def delta_state(self) -> str:
        """The state behind one position of the gated delta rule."""
        dims = self.einsum.operands
        return self._ordered(self._written(dims, self.operands), dims[0])

    def _written(self, dims: Sequence[tuple[str, ...]], names: Sequence[str]) -> str:
        """A state that fades by a factor, and then holds by a key its value, as far as a rate says."""
        state, factor, rate, key, value = dims
        faded = _einsum(state, (factor, state), state, names[1], names[0])
        wrong = f"{names[4]} - {_einsum(state, (state, key), value, 'faded', names[3])}"
        new = _einsum(state, (rate, key, value), state, *names[2:4], wrong)
        return f"(lambda faded: faded + {new})({faded})"

    def linear_state(self) -> str:
        """The state behind one position of linear attention."""
        (dims, factor, *written), (state, by, *arrays) = self.einsum.operands, self.operands
        faded = _einsum(dims, (factor, dims), dims, by, state)
        return self._ordered(f"{faded} + {_einsum(dims, written, dims, *arrays)}", dims)

    def _states(self, array: str, dims: tuple[str, ...]) -> str:
        sizes, factors = self.sizes, _aligned(self.operands[0], self.einsum.operands[0], dims)
        factors = f"jnp.broadcast_to({factors}, {tuple(sizes[dim] for dim in dims)})"
        joined = "lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1])"
        axis = dims.index(self.statement.along)
        return f"jax.lax.associative_scan({joined}, ({factors}, {array}), axis={axis})[1]"

    def conv(self) -> str:
        """At each position the weights times the last elements up to it, zeros before the first."""
        (dims, taps), (array, weights), along = self.einsum.operands, self.operands, self.statement.along
        (last,) = (dim for dim in taps if dim not in dims)
        axis, count = dims.index(along), self.sizes[last]
        padding = [(count - 1 if dim == along else 0, 0) for dim in dims]
        one = _aligned(
            f"{weights}[{':, ' * taps.index(last)}tap]", [dim for dim in taps if dim != last], dims
        )
        padded = f"jnp.pad({array}, {padding})"
        if along in self.local.groups and count > 1:
            padded = self._behind_halo(array, axis, along, count - 1)
        shifted = f"{padded}[{':, ' * axis}tap : tap + {self.sizes[along]}]"
        return self._ordered(f"sum({shifted} * {one} for tap in range({count}))", dims)


def _subscripts(every: Sequence[str], operands: Sequence[Sequence[str]], result: Sequence[str]) -> str:
    """An einsum as `jnp.einsum` takes it: of all dimensions those with a longer name get a free letter."""
    free = (letter for letter in ascii_letters if letter not in every)
    letters = {dim: dim if len(dim) == 1 and dim in ascii_letters else next(free) for dim in every}
    taken = ",".join("".join(map(letters.__getitem__, dims)) for dims in operands)
    return f"{taken}->{''.join(map(letters.__getitem__, result))}"


def _einsum(
    every: Sequence[str], operands: Sequence[Sequence[str]], result: Sequence[str], *arrays: str
) -> str:
    return f'jnp.einsum("{_subscripts(every, operands, result)}", {", ".join(arrays)})'


def _aligned(name: str, dims: Sequence[str], every: Sequence[str]) -> str:
    """An array that broadcasts against one with all dimensions."""
    kept = tuple(dim for dim in every if dim in dims)
    if tuple(dims) != kept:
        name = f"jnp.transpose({name}, {tuple(dims.index(dim) for dim in kept)})"
    first = next((index for index, dim in enumerate(every) if dim in dims), len(every))
    if all(dim in dims for dim in every[first:]):
        return name
    places = ", ".join(":" if dim in dims else "None" for dim in every[first:])
    return f"{name}[{places}]"


def _axes(dims: Sequence[str], some: Sequence[str]) -> str:
    """The places of some dimensions: ``1``, or ``(0, 1)``."""
    places = tuple(dims.index(dim) for dim in some)
    return str(places[0] if len(places) == 1 else places)
