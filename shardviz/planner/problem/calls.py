"""The calls of functions as statements: what each takes beside arrays, and the statements that it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from shardviz.errors import plural, quote
from shardviz.notation.program import Expression, FunctionCall, Literal, Mention
from shardviz.planner.problem import WRITTEN
from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.planner.problem.lowered import PART, ArrayUse, Dims, StatementWriter, WantedResult
from shardviz.text_tables import rows_beside

CALLS = {
    name: (f"_{method}", *form)
    for names, method, *form in rows_beside(__file__, "calls.txt")
    for name in names.split()
}
"""The functions that are not of each element: the method of `FunctionLowering` that takes one apart; what it
takes, in words and as an example."""


class FunctionLowering(StatementWriter):
    """A method for each kind of function."""

    def _expression(self, value: Expression, target: WantedResult = PART) -> ArrayUse:
        raise NotImplementedError

    def _pointwise(self, call: FunctionCall, target: WantedResult, number: float | None = None) -> ArrayUse:
        """A function of each element; of two arrays one may lack dimensions of the other."""
        operands = call.operands
        if call.function == "divide" and isinstance(operands[1], Literal):
            if not operands[1].value:
                self._fail("an array is divided by 0,", call, "divide by another number")
            use = self._expression(operands[0], target.of_operand(operands[0]))
            return self._emit("scale", (use,), use.dims, target, number=1 / operands[1].value)
        self._check_count(call, FUNCTIONS[call.function].operands or 1)
        kept = WantedResult(kept=frozenset(target.dims or target.kept))
        uses = tuple(self._expression(operand, kept.of_operand(operand)) for operand in operands)
        largest = max(uses, key=lambda use: len(use.dims))
        for use in uses:
            if missing := use.without(largest.dims):
                does = f"takes the {WRITTEN.get(call.function, call.function)} of"
                if call.function in ("add", "subtract", "divide"):
                    does = f"{call.function}s"
                doing = f"{target.name or self._name} {does} {largest} and {use}"
                own = f"{self._all_sized(missing)} of {use.name} {'is' if len(missing) == 1 else 'are'}"
                others = f"{self._all_sized(largest.without(use.dims))} of {largest.name}"
                hint = "both need the same dimensions, or one a subset of the other's"
                self._fail(f"{doing}, but {own} not {others},", call, hint)
        return self._emit(call.function, uses, largest.dims, target, number=number)

    def _scale(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        array, factor = self._arrays(call, 2)
        self._check_within(factor, array, call)
        return self._emit("multiply", (array, factor), array.dims, target)

    def _reduction(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        array, dims, _ = self._along(call, dims=None)
        return self._emit(call.function, (array,), array.without(dims), target)

    def _softmax(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """Also written ``softmax(X, M, Z)``, in parts of a row: no row need be on one device."""
        if len(call.operands) == 3:
            return self._pointwise(call, target)
        array, dims, _ = self._along(call)
        rows = self._raised_rows(array, array.without(dims))
        return self._emit("softmax", (array, *rows), array.dims, target)

    def _log_sum_exp(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        array, dims, _ = self._along(call)
        kept = array.without(dims)
        return self._emit("add_log", self._raised_rows(array, kept), kept, target)

    def _raised_rows(self, array: ArrayUse, kept: Dims) -> tuple[ArrayUse, ArrayUse]:
        """The largest of each row, and the sum of the exponentials of what is left without it."""
        largest = self._emit("max", (array,), kept)
        return largest, self._emit("sum_exp", (array, largest), kept)

    def _sum_exp(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        array, dims, (largest,) = self._along(call, arrays=2)
        self._check_within(largest, array, call)
        return self._emit("sum_exp", (array, largest), array.without(dims), target)

    def _pick(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        array, places, kept = self._at_places(call)
        return self._emit("pick", (array, places), kept, target)

    def _cross_entropy(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """The logarithm of the sum of exponentials, less the element at the place."""
        array, places, kept = self._at_places(call)
        every = self._emit("add_log", self._raised_rows(array, kept), kept)
        own = self._emit("pick", (array, places), kept)
        return self._emit("subtract", (every, own), kept, target)

    def _at_places(self, call: FunctionCall) -> tuple[ArrayUse, ArrayUse, Dims]:
        array, dims, (places,) = self._along(call, arrays=2)
        example = f"{call.function}({CALLS[call.function][2]})"
        self._take_argument(places, "s32", call, f"the places are an argument: {example}")
        kept = array.without(dims)
        if {*places.dims} != {*kept}:
            problem = f"{places} must have all dimensions of {array} but {dims[0]},"
            self._fail(problem, call, f"write {example}")
        return array, places, kept

    def _norm(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``layer_norm`` takes the mean away before, and may add a bias behind the scale."""
        is_layer = call.function == "layer_norm"
        array, dims, weights = self._along(call, weights=1 + is_layer)
        for weight in weights:
            self._check_within(weight, array, call)
        if is_layer:
            mean = self._emit("mean", (array,), array.without(dims))
            array = self._emit("subtract", (array, mean), array.dims)
        squares = self._emit("mean_square", (array,), array.without(dims))
        made = self._emit("normalize", (array, squares), array.dims, PART if weights else target)
        for function, weight in zip(("multiply", "add"), weights, strict=False):
            own = target if weight is weights[-1] else PART
            made = self._emit(function, (made, weight), array.dims, own)
        return made

    def _take(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        table, places = self._arrays(call, 2)
        self._take_argument(places, "s32", call, "take rows at an argument: take(W[v, d], T[b, t])")
        if shared := [dim for dim in places.dims if dim in table.dims]:
            problem = f"{shared[0]} is a dimension of both {table} and {places},"
            self._fail(problem, call, "the table has dimensions of its own")
        return self._emit("take", (table, places), (*places.dims, *table.dims[1:]), target)

    def _attention(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """With grouped heads the queries have a dimension more, where all heads share a key several. Values
        may be of another size than keys, and second queries and keys add to the scores, as DeepSeek's rotated
        ones do. Sinks are scores that have no value, one for each head; a cap bounds scores by its tanh. No
        score is ever kept (flash attention)."""
        count = sum(not isinstance(operand, Literal) for operand in call.operands)
        has_window = call.function == "window_attention"
        window, cap, call = self._numbers(call, count)
        if not has_window and not cap:
            window, cap = None, window or 0.0
        if not 3 <= count <= 6 or has_window != (window is not None and _is_count(window)):
            self._fail_form(call)
        queries, keys, values, *others = self._arrays(call, count)
        second, sinks = others[: 2 * (count > 4)], others[2 * (count > 4) :]
        (size,), made = keys.dims[-1:] or ("",), values.without(keys.dims)
        if {*keys.dims} - {*values.dims} != ({size} if made else set()) or len(made) > 1:
            problem = f"the keys {keys} and the values {values} have other dimensions,"
            self._fail(problem, call, "give both the same dimensions, but perhaps for the last")
        along = keys.without(queries.dims)
        # The queries' sequence stands where the keys' does, the heads of a group behind those of the keys.
        index = keys.dims.index(along[0]) if len(along) == 1 else len(queries.dims)
        own, behind = queries.dims[index : index + 1], queries.dims[index + 1 :]
        shared = tuple(dim for dim in behind if dim in keys.dims)
        is_grouped = behind[:1] != shared[:1] and len(keys.dims) > 3
        is_like_keys = (*queries.dims[:index], *along, *shared) == keys.dims
        if not is_like_keys or not own or own[0] in keys.dims or not shared or is_grouped:
            place = "another sequence in the same place, and perhaps heads of a group"
            problem = f"the queries {queries} must have the dimensions of the keys {keys}, {place},"
            hint = "attention(Q[b, t, n, h], K[b, s, n, h], V[b, s, n, h])"
            self._fail(problem, call, f"write {hint}, with grouped heads Q[b, t, n, g, h]")
        for query, key in [second] if second else ():
            like, kept = (*queries.dims[:-1], *key.dims[-1:]), {*key.dims[:-1]}
            if query.dims != like or not {*along} <= kept <= {*keys.dims[:-1]}:
                problem = f"the second queries {query} and keys {key} must be like the first,"
                self._fail(problem, call, "write attention(Q, K, V, Q2[b, t, n, r], K2[b, s, n, r])")
        for sink in sinks:
            if not {*sink.dims} <= {*queries.dims} - {own[0], size}:
                problem = f"the sinks {sink} must have no dimensions but those of heads of {queries},"
                self._fail(
                    problem, call, "write attention(Q[b, t, n, h], K[b, s, n, h], V[b, s, n, h], S[n])"
                )
        whole = (*along, size, *(use.dims[-1] for use in second[1:]))
        dims = tuple(made[0] if made and dim == size else dim for dim in queries.dims)
        operands = (queries, keys, values, *others)
        return self._emit(call.function, operands, dims, target, whole=whole, number=window, limit=cap)

    def _rotary(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """The base of the angles is a third argument."""
        base = 10000.0
        if len(call.operands) == 3:
            base, call = self._last_number(call, 3, lambda base: base > 0)
        array, (along,), _ = self._along(call)
        last = array.dims[-1]
        if last == along:
            self._fail(f"rotary turns halves of {along} by places along {along},", call, self._has(array))
        return self._emit("rotary", (array,), array.dims, target, whole=(last,), number=base, along=along)

    def _scan(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``cumsum(X, t)``; ``scan(A, X, t)``, whose factors may lack dimensions of what comes in;
        ``linear_attention(A, Q, K, V, t)``, whose states have those of V and one that Q and K share."""
        if len(call.operands) != 1 + (FUNCTIONS[call.function].operands or 0):
            self._fail_form(call)
        uses = [self._expression(operand) for operand in call.operands[:-1]]
        along, array = self._dim(call.operands[-1], call), uses[-1]
        for use in uses:
            self._check_has(along, use, call)
        factors = 2 if call.function == "delta_rule" else 1
        for use in uses[:factors]:
            self._check_within(use, array, call)
        beyond = [use.without(array.dims) for use in uses[factors:-1]]
        if beyond and (len(beyond[0]) != 1 or beyond[0] != beyond[1]):
            self._fail_as(
                f"{uses[factors]} and {uses[-2]} must share one dimension that {array} lacks,", call
            )
        # What a key finds in a state is a sum that its value needs whole.
        whole = (along, *(beyond[0] if factors > 1 else ()))
        return self._emit(call.function, tuple(uses), array.dims, target, whole=whole, along=along)

    def _state(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``linear_state(S[b,n,h,v], A[b,n], K[b,h], V[b,n,v])`` and, with rates behind the factors,
        ``delta_state``: a state behind one position more, in the place of the old one."""
        state, *others = self._arrays(call, FUNCTIONS[call.function].operands or 0)
        for use in others:
            self._check_within(use, state, call)
        *factors, key, value = others
        size, is_delta = state.without(value.dims), call.function == "delta_state"
        if len(size) != 1 or not {*size} <= {*key.dims}:
            self._fail_as(f"{key} must have the one dimension that {value} lacks of {state},", call)
        if wrong := next((use for use in factors if {*size} & {*use.dims}), None):
            self._fail_as(f"{wrong} must lack the dimension {size[0]} of keys,", call)
        whole = size if is_delta else ()
        return self._emit(call.function, (state, *others), state.dims, target, whole=whole)

    def _read_state(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``read_state(S[b,n,h,v], Q[b,h], h)``, beside the statement that makes the state."""
        state, dims, (query,) = self._along(call, arrays=2)
        self._check_within(query, state, call)
        self._check_has(dims[0], query, call)
        return self._emit("read_state", (state, query), state.without(dims), target)

    def _slice(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``slice(X, d, k, 128)``: the elements of d from 128 on, as the dimension k."""
        start, call = self._last_number(call, 4, lambda start: start >= 0 and not start % 1)
        array, (along,), _ = self._along(replace(call, operands=call.operands[:2]))
        new = self._new_dim(call.operands[2], (array,), call)
        dims = tuple(new if dim == along else dim for dim in array.dims)
        return self._emit("slice", (array,), dims, target, whole=(new,), number=start, along=along)

    def _concatenate(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``concatenate(A[b, p], B[b, q], d)``: p, then q, as the dimension d."""
        if len(call.operands) < 3:
            self._fail_form(call)
        arrays = tuple(self._expression(operand) for operand in call.operands[:-1])
        along = self._new_dim(call.operands[-1], arrays, call)
        own = [
            set(use.dims).difference(*({*other.dims} for other in arrays if other != use)) for use in arrays
        ]
        if any(len(dims) != 1 for dims in own) or len({len(use.dims) for use in arrays}) > 1:
            listed = " and ".join(map(str, arrays))
            problem = f"{listed} must differ in one dimension, which each has for itself,"
            self._fail(problem, call, "write concatenate(A[b, p], B[b, q], d)")
        whole = tuple(dim for (dim,) in own)
        dims = tuple(along if dim == whole[0] else dim for dim in arrays[0].dims)
        return self._emit("concatenate", arrays, dims, target, whole=whole, along=along)

    def _update(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``update(C[b, s, h], N[b, t, h], s)``: N in the place of the last of C along s."""
        array, (along,), (new,) = self._along(call, arrays=2)
        rows = new.without(array.dims)
        if len(rows) != 1 or array.without(new.dims) != (along,):
            problem = f"{new} must have the dimensions of {array}, and another one instead of {along},"
            self._fail(problem, call, "write update(C[b, s, h], N[b, t, h], s)")
        return self._emit("update", (array, new), array.dims, target, whole=rows, along=along)

    def _new_dim(self, value: Expression, arrays: tuple[ArrayUse, ...], call: FunctionCall) -> str:
        """The name of a dimension that no array has yet."""
        dim = self._dim(value, call)
        if has := next((array for array in arrays if dim in array.dims), None):
            hint = "choose another name for the new dimension"
            self._fail(f"{has} already has the dimension {dim},", call, hint)
        return dim

    def _conv(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """A causal convolution along a dimension, of each of the others for itself (depthwise)."""
        array, (along,), (weights,) = self._along(call, arrays=2)
        taps = weights.without(array.dims)
        if len(taps) != 1 or along in weights.dims:
            problem = f"the weights {weights} must have one dimension beside those of {array}, not {along},"
            self._fail(problem, call, "write conv(X[b, t, d], W[k, d], t)")
        return self._emit("conv", (array, weights), array.dims, target, whole=(along, *taps), along=along)

    def _where(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``where(M, A, B)``, with a number instead of B `fill`, and ``dropout(X, M, 0.1)`` take a mask."""
        number, place = None, 1 if call.function == "dropout" else 0
        if place:
            number, call = self._last_number(call, 3, lambda rate: 0 <= rate < 1)
        elif len(call.operands) != 3:
            self._fail_form(call)
        elif isinstance(call.operands[-1], Literal):
            number, call = self._last_number(call, 3)
            call = replace(call, function="fill")
        made = self._pointwise(call, target, number)
        mask = self.statements[-1].operands[place]
        self._take_argument(mask, "pred", call, "a mask is an argument: where(M[b, t], X, 0)")
        return made

    def _top_k(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """The largest along a dimension, and zero for all others."""
        count, call = self._last_number(call, 3, _is_count)
        array, dims, _ = self._along(call)
        return self._emit("top_k", (array,), array.dims, target, whole=dims, number=count, along=dims[0])

    def _slots(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """1 where a token has the place of those that chose an expert, in order; some have no place."""
        factor, load, call = self._numbers(call, 3)
        array, dims, _ = self._along(replace(call, operands=call.operands[:2]))
        places = self._new_dim(call.operands[2], (array,), call)
        made = (*array.dims, places)
        return self._emit("slots", (array,), made, target, (), dims, factor, dims[0], load)

    def _numbers(self, call: FunctionCall, count: int) -> tuple[float | None, float, FunctionCall]:
        """The one or two numbers that may stand behind so many operands, 0 for none, and the call without."""
        operands, behind = call.operands[:count], call.operands[count:]
        values = [one.value for one in behind if isinstance(one, Literal) and one.value > 0]
        if len(operands) < count or len(values) != len(behind) or len(values) > 2:
            self._fail_form(call)
        return (values[0] if values else None), sum(values[1:]), replace(call, operands=operands)

    def _dispatch(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """The rows of tokens go to the slots of the experts that they chose, or from there, and no product of
        all tokens and slots is made."""
        is_sent, (factor, load, call) = call.function == "dispatch", self._numbers(call, 4)
        if factor and not is_sent:
            self._fail_form(call)
        array, gates = (self._expression(operand) for operand in call.operands[:2])
        along, places = (self._dim(operand, call) for operand in call.operands[2:])
        experts = gates.dims[-1]
        own = (along,) if is_sent else (experts, places)
        for dim in own:
            self._check_has(dim, array, call)
        new = {experts, places} if is_sent else {along}
        is_right = along in gates.dims[:-1] and places not in gates.dims
        if not is_right or {*gates.dims, along, places} - {*array.dims} != new:
            self._fail_as(f"{array} and {gates} are not of the same tokens,", call)
        dims = tuple((places if is_sent else along) if dim == own[-1] else dim for dim in array.dims)
        dims = (experts, *dims) if is_sent else tuple(dim for dim in dims if dim != experts)
        return self._emit(call.function, (array, gates), dims, target, (), (along,), factor, along, load)

    def _reshape(self, call: FunctionCall, target: WantedResult) -> ArrayUse:
        """``reshape(P, q=nh)``: q becomes n and h, or n and h, side by side, become q."""
        if len(call.operands) != 1 or not call.merges:
            self._fail_form(call)
        array = self._expression(call.operands[0])
        dims = array.dims
        for whole, factors in call.merges:
            old, new = ((whole,), factors) if whole in dims else (factors, (whole,))
            index = dims.index(old[0]) if old[0] in dims else 0
            if dims[index : index + len(old)] != old:
                problem = f"{array} has neither {whole} nor {', '.join(factors)} side by side,"
                self._fail(problem, call, self._has(array))
            dims = (*dims[:index], *new, *dims[index + len(old) :])
        return self._emit("reshape", (array,), dims, target, merged=call.merges)

    # The arguments of functions.

    def _along(
        self, call: FunctionCall, *, arrays: int = 1, dims: int | None = 1, weights: int = 0
    ) -> tuple[ArrayUse, Dims, tuple[ArrayUse, ...]]:
        """The first array, its dimensions behind so many `arrays` (None: at least one), and the other arrays,
        of which as many as `weights` may follow."""
        most = len(call.operands) if dims is None else arrays + dims + weights
        if not arrays + (dims or 1) <= len(call.operands) <= most:
            self._fail_form(call)
        stop = None if dims is None else arrays + dims
        array = self._expression(call.operands[0])
        along = tuple(self._dim(operand, call) for operand in call.operands[arrays:stop])
        for dim in along:
            self._check_has(dim, array, call)
        others = (*call.operands[1:arrays], *(call.operands[stop:] if stop else ()))
        return array, along, tuple(self._expression(other) for other in others)

    def _arrays(self, call: FunctionCall, count: int) -> list[ArrayUse]:
        self._check_count(call, count)
        return [self._expression(operand) for operand in call.operands]

    def _last_number(
        self, call: FunctionCall, count: int, fits: Callable[[float], bool] = math.isfinite
    ) -> tuple[float, FunctionCall]:
        """The number at the end of so many operands, and the call without it."""
        *operands, last = call.operands
        if len(call.operands) != count or not isinstance(last, Literal) or not fits(last.value):
            self._fail_form(call)
        return last.value, replace(call, operands=tuple(operands))

    def _dim(self, value: Expression, call: FunctionCall) -> str:
        if not isinstance(value, Mention) or value.array is not None:
            self._fail(f"{call.function} takes the name of a dimension here,", value, "write for example d")
        return value.name

    def _take_argument(self, use: ArrayUse, dtype: str, call: FunctionCall, hint: str) -> None:
        if use.name not in self.arguments:
            holds = "is not a mask" if dtype == "pred" else "holds no whole numbers"
            self._fail(f"{use.name} {holds},", call, hint)
        self.dtypes[use.name] = dtype

    def _check_count(self, call: FunctionCall, count: int) -> None:
        if len(call.operands) != count:
            arrays = plural(count, "array")
            problem = f"{call.function} takes {arrays}, not {len(call.operands)},"
            self._fail(problem, call, f"give it {arrays}")

    def _check_within(self, factor: ArrayUse, array: ArrayUse, call: FunctionCall) -> None:
        for dim in factor.without(array.dims):
            problem = f"{call.function} has {self._sized(dim)} of {factor}, which {array} lacks,"
            hint = f"the dimensions of {array.name} are {', '.join(map(self._sized, array.dims))}"
            self._fail(problem, call, hint)

    def _check_has(self, dim: str, array: ArrayUse, call: FunctionCall) -> None:
        if dim not in array.dims:
            problem = f"{call.function} is along {quote(dim, 30)}, which {array} lacks,"
            self._fail(problem, call, self._has(array))

    def _has(self, array: ArrayUse) -> str:
        return f"the dimensions of {array.name} are {', '.join(array.dims)}"

    def _fail_as(self, problem: str, call: FunctionCall) -> NoReturn:
        self._fail(problem, call, f"write {call.function}({CALLS[call.function][2]})")

    def _fail_form(self, call: FunctionCall) -> NoReturn:
        _, words, example = CALLS[call.function]
        self._fail(f"{call.function} takes {words},", call, f"write {call.function}({example})")


def _is_count(number: float) -> bool:
    return number >= 1 and number % 1 == 0
