"""The arrays that a compiler's collectives move: in a program the compilers name each operation after its
statement; in a chain the arguments that went into a value tell which part made it, as each takes an argument
that none before it took. Where the text does not tell, all arrays are named that its shapes allow."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import prod

from shardviz.hlo import Collective, Origin
from shardviz.hlo.named_scopes import named_scope
from shardviz.planner.problem import Problem, Statement
from shardviz.sharding import ShardedArray

Shape = tuple[int, ...]
_SUMS = ("all-reduce", "reduce-scatter")


class MovedArrays:
    """The arrays of a problem that collectives of a target may move."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._made = [part.result for part in problem.parts]
        self._sums = [array for part in problem.parts for array in summed_operands(part).values()]

    def of(self, one: Collective) -> tuple[str, ...]:
        """The names of the arrays that a collective may move; only results hold partial sums."""
        if named := self._of_statement(one):
            return named
        origin = self._as_moved(one)
        if origin is not None and (known := names_of(origin, self.problem)):
            every = [*self.problem.arguments, *self._made, *self._sums]
            fitting = [array for array in every if self._fits(array, one)]
            likely = [array for array in fitting if array.rank == len(one.operand_shape)]
            for some in (likely, fitting):
                fits = {array.name for array in some}
                if allowed := tuple(name for name in known if name in fits):
                    return allowed
            return known
        arrays = self._made if one.op in _SUMS else [*self.problem.arguments, *self._made]
        return tuple(array.name for array in arrays if self._fits(array, one))

    def _of_statement(self, one: Collective) -> tuple[str, ...]:
        """The arrays of the statement that the collective is named after, as far as shapes allow them: a sum
        is one of its results; everything else moves an operand before, or the result after. () where no
        statement is named, or where the value is an argument's own."""
        parts = named_statements(one.source, self.problem)
        origin = self._as_moved(one)
        if not parts or (origin is not None and not origin.computed and len(origin.arguments) == 1):
            return ()
        made = [part.result for part in parts]
        made += [array for part in parts for array in summed_operands(part).values()]
        taken = [] if one.op in _SUMS else [operand for part in parts for operand in part.operands]
        if origin is not None and origin.computed:
            given = {array.name for array in self.problem.arguments}
            taken = [array for array in taken if array.name not in given]
        # How little speaks for an array: other dimensions than the collective's; a transpose, as gradients
        # are often made; a spec that is open (1) or gives pieces of another shape (2).
        doubts = {}
        for transposed in (True, False):  # what fits as it is need not be transposed
            for array in (each for each in (*made, *taken) if self._fits(each, one, transposed)):
                spec = 1
                if array.spec is not None:
                    piece = sorted(array.shard_shape(self.problem.mesh))
                    spec = 0 if piece in (sorted(one.operand_shape), sorted(one.result_shape)) else 2
                is_other = array.rank != len(one.operand_shape)
                doubts[array.name] = is_other, transposed and spec > 0, spec, transposed
        return tuple(name for name, doubt in doubts.items() if doubt == min(doubts.values()))

    def _as_moved(self, one: Collective) -> Origin | None:
        """The origin. A value made of one argument, with a shape that its pieces have, is that argument:
        compilers put pieces together by arithmetic too, as a TPU's does by the maximum of padded ones."""
        origin = one.origin
        if origin is None or not origin.computed or one.op in _SUMS:
            return origin
        number, *others = origin.arguments
        if others or number >= len(self.problem.arguments):
            return origin
        array = self.problem.arguments[number]
        is_same = self._fits(array, one) and len(one.operand_shape) >= array.rank
        return replace(origin, computed=False) if is_same else origin

    def _fits(self, array: ShardedArray, one: Collective, transposed: bool = False) -> bool:
        shapes, devices = (one.operand_shape, one.result_shape), self.problem.mesh.size
        wholes = permutations(array.shape) if transposed and array.rank <= 4 else [array.shape]
        return any(all(_could_be(shape, whole, devices) for shape in shapes) for whole in wholes)


def _could_be(shape: Shape, whole: Shape, devices: int) -> bool:
    """A device's piece of an array may have that shape: each dimension cut by a divisor of the mesh. Where
    compilers have folded dimensions together only the number of elements is judged."""
    if len(shape) != len(whole):
        shape, whole = (prod(shape),), (prod(whole),)
    return all(
        size == full or (size and full % size == 0 and devices % (full // size) == 0)
        for size, full in zip(shape, whole, strict=True)
    )


def named_statements(source: str, problem: Problem) -> list[Statement]:
    """The statements of a program that a compiler's operation is named after: in ``jit(program)/H/dot`` a
    forward one, in ``transpose(jvp(H))`` those of its gradients, in ``rematted_computation/H`` the one that
    computes H again. A program of one statement has no such names."""
    made = {part.result.name: part for part in problem.parts}
    scope = named_scope(source, made) if len(made) > 1 else None
    if scope is None:
        return []
    if scope.phase == "forward" or made[scope.name].phase != "forward":
        return [made[scope.name]]
    return [part for part in problem.parts if part.phase == scope.phase and part.source == scope.name]


def names_of(origin: Origin, problem: Problem) -> tuple[str, ...]:
    """The arrays that an origin may be; "a value computed from A" for one that the problem has no name for,
    () for one that is not a part of the problem."""
    arguments = problem.arguments
    if not origin.arguments or origin.arguments[-1] >= len(arguments):
        return ()
    given = [arguments[number].name for number in origin.arguments]
    names = [] if origin.computed else [*given]
    # The arguments that each array is made of, and whether making it may, or may not, compute.
    made_of = {array.name: ({number}, {False}) for number, array in enumerate(arguments)}
    for part in problem.parts:
        needed = set[int]().union(*(made_of[operand.name][0] for operand in part.operands))
        operand, result = part.operands[0], part.result
        only_moves = len(part.operands) == 1 and part.function in ("multiply", "reshape")
        computes = {True}
        if only_moves and operand.elements == result.elements:
            # A transpose moves. Where dimensions of one element are added up, a compiler may see that or not.
            is_transposed = sorted(operand.dims) == sorted(result.dims)
            computes = made_of[operand.name][1] | (set() if is_transposed else {True})
        made_of[part.result.name] = needed, computes
        if needed == {*origin.arguments} and origin.computed in computes:
            names.append(part.result.name)
    if origin.computed:
        for part in problem.parts:
            sums = summed_operands(part).items()
            names += [array.name for name, array in sums if made_of[name][0] == {*origin.arguments}]
    return tuple(names) or (f"a value computed from {' and '.join(given)}",)


def summed_operands(part: Statement) -> dict[str, ShardedArray]:
    """The sums of operands over dimensions that they alone have, by the operand's name, which a program may
    add up before it multiplies, as `jax.numpy.einsum` does: of ``a,dg->ad`` it multiplies A by the sums of W
    over g. A single operand has none, as they are the result."""
    if part.function != "multiply":
        return {}
    summed = {}
    for index, operand in enumerate(part.operands):
        others = [operand.dims for number, operand in enumerate(part.operands) if number != index]
        elsewhere = {dim for dims in (*others, part.result.dims) for dim in dims}
        alone = [dim for dim in dict.fromkeys(operand.dims) if dim not in elsewhere]
        if others and alone:
            kept = [pair for pair in zip(operand.dims, operand.shape, strict=True) if pair[0] in elsewhere]
            dims, sizes = tuple(dim for dim, _ in kept), tuple(size for _, size in kept)
            name = f"the sums of {operand.name} over {', '.join(alone)}"
            summed[operand.name] = ShardedArray(name, dims, sizes, operand.dtype, None)
    return summed
