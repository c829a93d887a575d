"""Programs of the process that they were written for, lowered for hardware that is elsewhere. JAX is known by
its attributes here, and loaded by the user; the bytes of its StableHLO module have all that it would compile
with: shardings by axis name, donated arguments, the paths of arguments, source lines."""

from __future__ import annotations

import io
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from types import MappingProxyType
from typing import Any

from shardviz.errors import CompilerError, QuestionError, ShardvizError, one_line, quote
from shardviz.hlo.arguments import pieces_of
from shardviz.hlo.mlir.attributes import Meshes, element_type
from shardviz.hlo.mlir.shardings import one_sharding
from shardviz.notation.gspmd import written_spec
from shardviz.reports.lowered_module import LoweredArray, LoweredModule, name_in
from shardviz.sharding import Mesh
from shardviz.sharding.mesh import writable_names

_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"=(\d+)')
_LOST_DONATION = "Some donated buffers were not usable"
_PATH = re.compile(r'"(\w+(?:\[\d+\])?)([.\[][^"\\\n]*)"')
"""The path of an argument, or of a result, in MLIR: ``state.model['w']``, ``result[0].model['w']``."""
MAX_WORDS = 400
PROGRAM_HINT = "give a function, a jitted one, what its lower(…) returns, or what compile() returns"


def lower_program(
    program: Any, args: Sequence[Any], kwargs: Mapping[str, Any], platform: str
) -> LoweredModule:
    """Lower a program for a platform of JAX: "tpu", "cuda" or "cpu". Raises `QuestionError` for what is not a
    program, and for one that is compiled already; what JAX raises comes through."""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.filterwarnings("always", _LOST_DONATION)
            lowered, was_lowered = _lowered(program, args, kwargs, platform)
    except ValueError as error:
        if "is different from the lowering platform" not in str(error):
            raise
        raise QuestionError(
            "it calls back to Python, as jax.debug.print does, which JAX lowers only for local devices",
            "remove the callback for shardviz",
        ) from error
    lost = []
    for warning in warned:
        if _LOST_DONATION in str(warning.message):
            lost.append(str(warning.message))
        else:  # all others are shown
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return replace(
        lowered_module(_with_fields(jaxs_own(lowered).compiler_ir("stablehlo"), args, kwargs), args, kwargs),
        platform="" if was_lowered else platform,
        # Private, and the same in jax 0.8.3 to 0.12.
        options=getattr(getattr(jaxs_own(lowered), "_lowering", None), "_compiler_options_kvs", ()),
        lost_donation=" ".join(warning.partition("\n")[0] for warning in lost),
    )


def lowered_module(
    module: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = MappingProxyType({})
) -> LoweredModule:
    """A StableHLO module with its facts, by JAX's bindings. Its arguments have the mesh, where the module
    declares none, and their logical axes."""
    code = io.BytesIO()
    module.operation.write_bytecode(code)
    attributes = module.operation.attributes
    operations = (each for each in module.body.operations if each.operation.name == "sdy.mesh")
    written = (_AXIS.findall(str(operation.attributes["mesh"])) for operation in operations)
    declared = [
        Mesh(writable_names(name for name, _ in axes), tuple(int(size) for _, size in axes))
        for axes in written
        if axes
    ]
    # A module without Shardy's declarations has those of its arguments.
    for leaf in () if declared else sys.modules["jax"].tree_util.tree_leaves((tuple(args), dict(kwargs))):
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        if mesh is not None and math.prod(mesh.axis_sizes) > 1:
            names, sizes = map(str, mesh.axis_names), tuple(map(int, mesh.axis_sizes))
            declared.append(Mesh(writable_names(names), sizes))
    meshes = [mesh.without_ones() for mesh in declared]
    devices = meshes[0].size if meshes else 1
    if "mhlo.num_partitions" in attributes:
        devices = int(str(attributes["mhlo.num_partitions"]).partition(" ")[0])
    meshes = [mesh for mesh in dict.fromkeys(meshes) if mesh.size == devices]
    return LoweredModule(
        str(attributes["sym_name"]).strip('"'),
        "",
        devices,
        tuple(meshes),
        code.getvalue(),
        *_ends(module, meshes[0] if meshes else None, _logical_axes(args, kwargs)),
    )


def _logical_axes(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The logical axes of Flax's boxes (`nn.Partitioned`, `nnx.Variable`) by their paths within an argument;
    "" for a dimension without one. Boxes of one path that differ are left out."""
    tree = sys.modules["jax"].tree_util
    by_path: dict[str, tuple[str, ...]] = {}
    every = (tuple(args), dict(kwargs))
    for path, box in tree.tree_flatten_with_path(every, is_leaf=lambda node: bool(_axis_names(node)))[0]:
        if names := _axis_names(box):
            own = tree.keystr(path[2:])
            by_path[own] = names if by_path.get(own, names) == names else ()
    return by_path


def _with_fields(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The module, in which the paths of arguments and results have the names of attributes in place of the
    indices that JAX has for classes whose children have no keys, as Haliax's arrays."""
    tree, paths = sys.modules["jax"].tree_util, {}
    leaves = tree.tree_flatten_with_path((tuple(args), dict(kwargs)))[0]
    for path in (path for path, _ in leaves if any(isinstance(key, tree.FlattenedIndexKey) for key in path)):
        node: Any = (tuple(args), dict(kwargs))
        named = []
        for key in path:
            parent, fields = node, []
            if isinstance(key, tree.FlattenedIndexKey):
                node = tree.tree_leaves(parent, is_leaf=lambda child, root=parent: child is not root)[key.key]
                fields = [name for name, child in getattr(parent, "__dict__", {}).items() if child is node]
            elif hasattr(key, "name"):
                node = getattr(parent, key.name, None)
            else:
                with suppress(TypeError, LookupError):  # a class of which JAX alone knows the keys
                    node = parent[key.idx if hasattr(key, "idx") else key.key]
            named.append(tree.GetAttrKey(fields[0]) if len(fields) == 1 else key)
        own = re.sub(r"<flat index (\d+)>", r"\1", tree.keystr(path[2:]))
        paths[own] = re.sub(r"<flat index (\d+)>", r"\1", tree.keystr((*named[2:],)))
    if not paths:
        return module
    text = module.operation.get_asm(enable_debug_info=True)
    text = _PATH.sub(lambda match: f'"{match[1]}{paths.get(match[2], match[2])}"', text)
    return type(module).parse(text, module.context)


def _axis_names(box: Any) -> tuple[str, ...]:
    """The names that a box gives the dimensions of its value; none for what is not a box."""
    if not hasattr(box, "value"):
        return ()
    named = (getattr(box, name, None) for name in ("names", "sharding_names", "sharding"))
    names = next((annotation for annotation in named if isinstance(annotation, tuple)), ())
    return tuple("" if name is None else str(name) for name in names)


def _ends(
    module: Any, mesh: Mesh | None, logical: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[LoweredArray, ...], tuple[LoweredArray, ...]]:
    """The arguments of a module and its results, as it declares them."""
    operations = {
        str(symbol.attributes["sym_name"]): symbol
        for symbol in module.body.operations
        if "sym_name" in symbol.attributes
    }
    main = operations.get('"main"')
    if main is None:
        raise QuestionError("its module has no function main", "save what lower(…) returns whole")
    declared = Meshes(str(symbol) for symbol in operations.values() if symbol.operation.name == "sdy.mesh")

    def declare(kind: Any, attributes: Any, path: str = "") -> LoweredArray:
        said = {attribute.name: str(attribute.attr) for attribute in attributes}
        shape = tuple(getattr(kind, "shape", ()))
        spec = None
        if (sharding := said.get("sdy.sharding")) and "?" not in sharding:
            tensor_sharding = one_sharding(sharding, declared)
            spec = None if tensor_sharding is None else tensor_sharding.spec()
        elif sharding := said.get("mhlo.sharding"):
            spec = written_spec(sharding.strip('"'), mesh, len(shape))
        dtype = str(getattr(kind, "element_type", kind))
        with suppress(QuestionError):  # a type that has no arrays here goes by its own name
            dtype = element_type(dtype)
        _, *steps = pieces_of(path) or [""]
        box = "".join(steps[:-1]) if steps[-1:] in ([".value"], [".raw_value"]) else "".join(steps)
        return LoweredArray(
            path or said.get("jax.result_info", "").strip('"').replace('\\"', '"'),
            shape,
            dtype,
            spec,
            "jax.buffer_donor" in said or "tf.aliasing_output" in said,
            said.get("mhlo.memory_kind", "").strip('"'),
            logical.get(box, ()) if path else (),
        )

    def each_with(values: Sequence[Any], name: str) -> Iterator[tuple[Any, Any]]:
        """Values, each with its attributes; none of a module that has none."""
        said = main.attributes[name] if name in main.attributes else [()] * len(values)
        return zip(values, said, strict=True)

    arguments = each_with(main.arguments, "arg_attrs")
    return (
        tuple(declare(value.type, own, name_in(value.location)) for value, own in arguments),
        tuple(declare(*pair) for pair in each_with(main.type.results, "res_attrs")),
    )


def refusal_of(error: Exception) -> ShardvizError:
    """An error of ours for one that JAX raised as it lowered a program, in its words, on one line."""
    if isinstance(error, ShardvizError):
        return error
    words = f"{type(error).__name__}: {one_line(str(error), MAX_WORDS)}"
    return CompilerError(f"JAX does not lower it for this target: {words}")


def check_program(program: Any) -> None:
    """Raise `QuestionError` for text, and for what cannot be called."""
    if isinstance(program, str | bytes):
        problem = f"{quote(str(program))} is text, not a program"
        raise QuestionError(problem, "shardviz.read_hlo(…) reads a compiler's text")
    if not callable(program) and not hasattr(program, "compile") and not hasattr(program, "lower"):
        raise QuestionError(f"{quote(repr(program))} is not a program", PROGRAM_HINT)


def compile_program(
    program: Any, args: Sequence[Any], kwargs: Mapping[str, Any], options: dict[str, Any]
) -> Any:
    """JAX's `Compiled` of a program, for the devices of its arguments; nothing runs, none is donated. Raises
    `QuestionError` for what is not a program, and for arguments to one with its own; else what JAX does."""
    stage = stage_of(program, args, kwargs)
    if stage == "compiled":
        if options:
            problem = "options are for a program that is not compiled yet"
            raise QuestionError(problem, "give the jitted function itself")
        return jaxs_own(program)
    is_plain = not stage and not hasattr(program, "lower")
    try:
        if stage == "traced":
            program = program.lower()
        elif not stage:
            program = _jitted(program).lower(*args, **kwargs)
        # Without options as any library around JAX compiles it.
        return jaxs_own(program.compile(compiler_options=options) if options else program.compile())
    except Exception as error:
        if isinstance(error, ValueError) and "AbstractMesh" in str(error):
            problem = "the mesh of the arguments is abstract, so there are no devices to compile for"
            hint = "name a target, such as target='v5e:2x4', or use jax.make_mesh"
            raise QuestionError(problem, hint) from error
        if is_plain and not isinstance(error, QuestionError):
            note = "shardviz jitted this function as it stands; jit it yourself for static arguments."
            error.add_note(note)
        raise


def jaxs_own(stage: Any) -> Any:
    """JAX's own object, where a library such as Equinox or Flax has put one of its own around it."""
    return getattr(stage, "compiled", getattr(stage, "lowered", stage))


def _lowered(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any], platform: str) -> tuple[Any, bool]:
    """JAX's `Lowered`, and true where the program was that already."""
    stage = stage_of(program, args, kwargs)
    if stage == "compiled":
        hint = "give the jitted function and its arguments, or what its trace(…) returns"
        raise QuestionError("this program is compiled already, and no target can compile it again", hint)
    if stage == "lowered":
        return program, True
    if not stage:
        program = _jitted(program)
        has_trace = hasattr(program, "trace")
        program = program.trace(*args, **kwargs) if has_trace else _around(program, args, kwargs)
    return program.lower(lowering_platforms=(platform,)), False


def stage_of(program: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> str:
    """The stage that a program has reached: "traced", "lowered", "compiled"; "" for a function."""
    stage = "traced" if hasattr(program, "lower") and hasattr(program, "jaxpr") else ""
    if hasattr(program, "input_shardings") or (hasattr(program, "compiled") and not callable(program)):
        stage = "compiled"
    elif hasattr(program, "as_text") and hasattr(program, "compile"):
        stage = "lowered"
    if stage and (args or kwargs):
        problem = f"a {type(program).__name__} program has its arguments already"
        raise QuestionError(problem, "leave out the arguments, or give the jitted function itself")
    return stage


def _jitted(program: Any) -> Any:
    check_program(program)
    if hasattr(program, "trace") or hasattr(program, "lower"):
        return program
    jax = sys.modules.get("jax")
    if jax is None:
        raise QuestionError(f"{quote(repr(program))} is not jitted, and jax is not loaded", PROGRAM_HINT)
    return jax.jit(program)


def _around(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The trace of a jit of another library, such as Equinox's, which has no platforms to choose from: as a
    part of a jit of JAX's own, whose arguments and results are the arrays among its own."""
    jax = sys.modules["jax"]
    tree = jax.tree_util
    leaves, structure = tree.tree_flatten((tuple(args), dict(kwargs)))
    is_array = [hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves]
    arrays = [leaf if kept else None for leaf, kept in zip(leaves, is_array, strict=True)]
    only_args, only_kwargs = tree.tree_unflatten(structure, arrays)

    def whole(*given: Any, **named: Any) -> Any:
        remaining = iter(tree.tree_leaves((given, named)))
        merged = [next(remaining) if kept else leaf for leaf, kept in zip(leaves, is_array, strict=True)]
        own, own_named = tree.tree_unflatten(structure, merged)
        made = program(*own, **own_named)
        return tree.tree_map(lambda leaf: leaf if hasattr(leaf, "dtype") else None, made)

    whole.__name__ = getattr(program, "__name__", "program")
    with suppress(TypeError, ValueError):  # by their names the module speaks of the arguments
        whole.__signature__ = signature(program)  # type: ignore[attr-defined]
    return jax.jit(whole).trace(*only_args, **only_kwargs)
