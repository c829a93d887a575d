"""Changes of a user's source with which JAX accepts shardings that it has refused: the expression that the
error came through is written in another way, and JAX traces the program again."""

from __future__ import annotations

import ast
import copy
import gc
import re
import time
import traceback
from ast import unparse as _text
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import jax

from shardviz.compiler.lowering import MAX_WORDS
from shardviz.errors import QuestionError, one_line
from shardviz.reports.lowered_module import LoweredModule, ShardingRefusal, SourceChange
from shardviz.sharding import canonical_dtype

ENOUGH = 3
"""Changes of one kind that JAX accepts, after which no other of that kind is tried."""
NAMES = {"P": "jax.P", "jnp": "jax.numpy"}
"""The names of changes, in full for a file that has them not."""
Again = Callable[[Sequence[int], Sequence[int]], LoweredModule]
"""Traces and lowers the program once more, with arguments of the second shape for those of the first."""

_TYPE = re.compile(r"\b(?:b?float|u?int|complex|bool)\w*\[[^\[\]]*\](?:\{[^{}]*\})?")
_OF_SHARDINGS = re.compile(r"[Ss]harding|evenly|divisible by|varying|unreduced|PartitionSpec|mesh ax|\w@")
_UNEVEN = re.compile(
    r"(?:axis|dimension) (\d+) (?:is partitioned|should be divisible by|\(of size \d+\) to mesh .*size) (\d+)"
)
_FULL_SHAPE = re.compile(r"(?:full shape: |Got shape: |of shape \w+)[\[(]([\d, ]+)")
_SPAN = attrgetter("lineno", "col_offset", "end_lineno", "end_col_offset")
_IDLE_AXES = re.compile(r"(?:across mesh axes \{.*?\} and not \{|replicated across mesh axis ')([^}']*)")


def caption(words: str) -> str:
    """A type as JAX writes it, ``float32[64@X,512]{V:Y}``, in fewer letters: ``f32[64_X, 512]{V:Y}``."""
    dtype, _, rest = words.partition("[")
    with suppress(QuestionError):  # a key has none
        dtype = canonical_dtype(dtype)
    return f"{dtype}[{rest.replace('@', '_').replace(',', ', ')}"


def _dims(words: str) -> list[tuple[int, tuple[str, ...]]]:
    """The sizes of such a type, each with its axes, of which several stand in brackets."""
    dims = re.findall(r"(\d+)(?:@(\([^)]*\)|[^,\]]*))?", words.partition("[")[2].partition("]")[0])
    return [(int(size), tuple(_names(axes))) for size, axes in dims]


def _names(text: str) -> list[str]:
    return re.findall(r"[^\s(),']+", text)


class _Change(NamedTuple):
    """The text to have in place of a node of the source, or, without a node, shapes of arguments."""

    node: ast.expr | None
    code: str
    note: str = ""
    shapes: tuple[Sequence[int], Sequence[int]] = ((), ())

    @classmethod
    def within(cls, node: ast.expr | None, part: ast.expr, code: str, note: str = "") -> _Change:
        """The node with other code for a part of it."""
        changed = copy.deepcopy(node, {id(part): ast.parse(code, mode="eval").body})
        return cls(node, _text(changed) if changed else "", note)


@dataclass(frozen=True)
class Refused:
    """An `error` of JAX about shardings: the `node` of the user's `tree` that it came through, the local
    `names` there, the types of the arrays that met, in JAX's words, and the shape of the `result`."""

    error: BaseException
    file: str
    tree: ast.Module
    node: ast.expr | None = None
    names: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()
    result: tuple[int, ...] | None = None

    @classmethod
    def by(cls, error: BaseException, is_own: Callable[[str], bool], main: str) -> Refused | None:
        """The same for any error that a program of the file `main` has raised; None where it is another."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        files = [frame.f_code.co_filename for frame in frames]
        in_shard_map = any(Path(file).name == "shard_map.py" for file in files)
        is_of_shardings = in_shard_map or _OF_SHARDINGS.search(f"{type(error).__name__}: {error}")
        if not is_of_shardings or isinstance(error, SyntaxError) or is_own(files[-1]):
            return None
        last = max((number for number, file in enumerate(files) if is_own(file)), default=-1)
        file = files[last] if last >= 0 else main
        source = Path(file).read_bytes() if Path(file).is_file() else b""
        refused = cls(error, file, ast.parse(source), types=tuple(_TYPE.findall(str(error))))
        if last < 0:
            return refused
        at = traceback.extract_tb(error.__traceback__)[last]
        span = at.lineno, at.colno, at.end_lineno, at.end_colno
        for each in ast.walk(refused.tree):
            if isinstance(each, ast.expr) and _SPAN(each) == span:
                refused = replace(refused, node=each, names=frozenset(frames[last].f_locals))
        bound = [frame.f_locals for frame in frames[last:] if frame.f_code.co_name == "bind_with_trace"]
        with suppress(Exception):  # JAX's own insides are as they are in this release
            operation, args, params = bound[-1]["self"], bound[-1]["args"], bound[-1]["params"]
            refused = replace(refused, types=tuple(str(jax.typeof(each)) for each in args))
            plain = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in args]
            result = jax.eval_shape(lambda *own: operation.bind(*own, **params), *plain)
            refused = replace(refused, result=jax.tree.leaves(result)[0].shape)
        return refused

    def refusal(self, place_of: Callable[[BaseException], str], again: Again) -> ShardingRefusal:
        """The error with the changes that JAX accepts."""
        location, words = place_of(self.error), f"{type(self.error).__name__}: {self.error}"
        changes = tuple(self._tried(place_of, again))
        best = next((each.code for each in changes if each.lowered), "")
        hint = f"JAX accepts {best}" if best else "JAX accepted no change that was tried"
        explained = ShardingRefusal(f"{location}{one_line(words, MAX_WORDS)}", hint)
        explained.place, explained.words, explained.changes = location.rstrip(": "), words, changes
        explained.source = "" if self.node is None else _text(self.node)
        explained.types = tuple(caption(each) for each in dict.fromkeys(self.types))
        return explained

    def _tried(self, place_of: Callable[[BaseException], str], again: Again) -> Iterator[SourceChange]:
        until = time.monotonic() + 60
        parts = [*ast.walk(self.tree)]
        bound = {node.asname or node.name for node in parts if isinstance(node, ast.alias)}
        bound |= {node.id for node in parts if isinstance(node, ast.Name)}
        for kind in self._changes():
            accepted = 0
            for change in kind:
                if accepted == ENOUGH or time.monotonic() > until:
                    break
                lowered, then = None, ""
                for name in NAMES.keys() - bound:
                    change = change._replace(code=re.sub(rf"(?<![\w.]){name}\b", NAMES[name], change.code))
                try:
                    with self._changed(change), redirect_stdout(None):
                        lowered = again(*change.shapes)
                except BaseException as error:
                    if place_of(error) == place_of(self.error):
                        continue
                    then = one_line(f"{place_of(error)}{type(error).__name__}: {error}", MAX_WORDS)
                accepted += 1
                line = f"line {change.node.lineno}" if change.node and change.node is not self.node else ""
                note = ": ".join(filter(None, (line, change.note)))
                yield SourceChange(change.code, note, lowered, then)

    @contextmanager
    def _changed(self, change: _Change) -> Iterator[None]:
        """A context in which the functions of the file run as if the change were written there."""
        new = {}
        if change.node is not None:
            new[id(change.node)] = ast.parse(change.code, mode="eval").body
            for each in ast.walk(new[id(change.node)]):
                ast.copy_location(each, change.node)
        trees = self.tree, copy.deepcopy(self.tree, new)
        before, after = (_codes(compile(tree, self.file, "exec", dont_inherit=True)) for tree in trees)
        codes = dict(zip(before, after, strict=True))
        functions = [each for each in gc.get_objects() if type(each) is FunctionType]
        of_file = [(each, each.__code__) for each in functions if each.__code__.co_filename == self.file]
        own = [(function, code) for function, code in of_file if code in codes]
        jax.clear_caches()
        try:
            for function, code in own:
                function.__globals__.setdefault("jax", jax)
                function.__code__ = codes[code]
            yield
        finally:
            for function, code in own:
                function.__code__ = code

    def _changes(self) -> Iterator[Iterator[_Change]]:
        """Changes that may help, one iterator for each kind, the most natural first."""
        if uneven := _UNEVEN.search(str(self.error)):
            yield self._padded(int(uneven[1]), int(uneven[2]))
            return
        if self.node is not None:
            yield self._varying()
            yield self._with_out_sharding(self.node)
            yield self._resharded()
        yield self._in_shard_map()

    def _specs(self, shape: Sequence[int]) -> list[str]:
        """Specs, those first that split each dimension as one of equal size is split, or not; then those with
        axes of other dimensions, as of a contracted one."""
        split = {dim for each in self.types for dim in _dims(each) if dim[1]}
        ways = product(((), *sorted({axes for _, axes in split})), repeat=len(shape))
        specs = []
        for way in islice(ways, 10_000):
            given = [each for axes in way for each in axes]
            strange = sum(axes != () and (n, axes) not in split for n, axes in zip(shape, way, strict=True))
            if len({*given}) == len(given):
                specs.append((strange, -len(given), _spec(way)))
        return [spec for _, _, spec in sorted(specs)]

    def _with_out_sharding(self, node: ast.expr) -> Iterator[_Change]:
        """The operation with the sharding of its result."""
        if isinstance(node, ast.Call) and _text(node.func).endswith("with_sharding_constraint"):
            yield _Change(node, f"jax.sharding.reshard{_text(node)[len(_text(node.func)) :]}")
        for spec in () if self.result is None else self._specs(self.result):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                code = f"jnp.matmul({_text(node.left)}, {_text(node.right)}, out_sharding={spec})"
            elif isinstance(node, ast.Subscript):
                code = f"{_text(node.value)}.at[{_text(node.slice)}].get(out_sharding={spec})"
            elif isinstance(node, ast.Call) and "out_sharding" not in _text(node):
                code = f"{_text(node)[:-1]}, out_sharding={spec})"
            else:
                return
            yield _Change(node, code)

    def _around(self, calls: Callable[[int], Sequence[str]], note: str = "") -> Iterator[_Change]:
        """The operation with calls around an operand, those for its number, or around a branch."""
        for number, operand in enumerate(self._operands(self.node) if self.node else ()):
            inner = operand.body if isinstance(operand, ast.Lambda) else operand
            for call in calls(number):
                yield _Change.within(self.node, inner, call.format(_text(inner)), note)

    def _resharded(self) -> Iterator[_Change]:
        shapes = [[size for size, _ in _dims(type_text)] for type_text in self.types] or [[]]
        specs = [[f"jax.sharding.reshard({{}}, {spec})" for spec in self._specs(shape)] for shape in shapes]
        return self._around(lambda number: specs[min(number, len(specs) - 1)][: ENOUGH + 1])

    def _varying(self) -> Iterator[_Change]:
        """Casts to vary over the axes that others vary over."""
        varying = re.findall(r"\{V:([^{}]*)\}", " ".join(self.types))
        axes = tuple(sorted({axis for text in varying for axis in _names(text)}))
        return self._around(lambda _: [f"jax.lax.pcast({{}}, {axes}, to='varying')"] * bool(axes))

    def _padded(self, dim: int, parts: int) -> Iterator[_Change]:
        """A dimension padded to the next multiple of the devices that it is split over."""
        said = _FULL_SHAPE.search(str(self.error))
        shape = tuple(map(int, _names(said[1]))) if said else ()
        pads = tuple((0, -size % parts if number == dim else 0) for number, size in enumerate(shape))
        wider = tuple(size + more for size, (_, more) in zip(shape, pads, strict=True))
        note = f"padded by {sum(wider) - sum(shape)}"
        yield from self._around(lambda _: [f"jnp.pad({{}}, {pads})"], note)
        yield _Change(None, f"an argument of the shape {wider} in place of {shape}", note, (shape, wider))

    def _in_shard_map(self) -> Iterator[_Change]:
        """A shard_map whose results are summed, or have other specs, or are not checked."""
        idle = _IDLE_AXES.search(str(self.error))
        axes = tuple(_names(idle[1])) if idle else ()
        for call in ast.walk(self.tree):
            given = {keyword.arg: keyword.value for keyword in getattr(call, "keywords", ())}
            if "out_specs" not in given or "check_vma" in given or not isinstance(call, ast.Call):
                continue
            if axes:
                for value in self._returned(call):
                    yield _Change(value, f"jax.lax.psum({_text(value)}, {axes})", "if it is a partial sum")
                yield _Change.within(call, given["out_specs"], _spec([axes]), "if each device has its part")
            note = "if all devices have the same result" if axes else ""
            yield _Change(call, f"{_text(call)[:-1]}, check_vma=False)", note)

    def _returned(self, shard_map: ast.Call) -> Iterator[ast.expr]:
        """The results of the functions that a shard_map takes or decorates."""
        parts = {*ast.walk(shard_map)}
        names = {node.id for node in parts if isinstance(node, ast.Name)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Lambda) and node in parts:
                yield node.body
            elif isinstance(node, ast.FunctionDef):
                is_mapped = node.name in names or shard_map in node.decorator_list
                returns = (stmt.value for stmt in node.body if isinstance(stmt, ast.Return))
                yield from filter(None, returns if is_mapped else ())

    def _operands(self, node: ast.AST) -> Iterator[ast.expr]:
        """The expressions that an operation takes, those of a list one by one, and the array of a method."""
        for child in ast.iter_child_nodes(node):
            is_called = child is getattr(node, "func", None)
            if isinstance(child, (ast.Attribute if is_called else ast.List | ast.Tuple | ast.keyword)):
                yield from self._operands(child)
            elif isinstance(child, ast.expr) and not isinstance(child, ast.Constant) and not is_called:
                root = _text(child).partition(".")[0]
                is_global = isinstance(child, ast.Name | ast.Attribute) and root not in self.names
                yield from () if is_global else (child,)


def _spec(axes: Sequence[Sequence[str]]) -> str:
    entries = [repr(names[0]) if len(names) == 1 else repr(names) if names else "None" for names in axes]
    return f"P({', '.join(entries)})"


def _codes(code: CodeType) -> list[CodeType]:
    inner = (nested for nested in code.co_consts if isinstance(nested, CodeType))
    return [code, *(nested for own in inner for nested in _codes(own))]
