"""Shardy, the partitioner inside jaxlib: no devices, no backend, a mesh of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jax.sharding import AbstractMesh
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from shardviz.compiler.child.program import Program, axis_types
from shardviz.compiler.child.xla import simulate
from shardviz.compiler.messages import Output, TargetMesh
from shardviz.reports.lowered_module import ProgramChange, ScheduleCandidate, name_in
from shardviz.reports.target_result import TargetResult
from shardviz.targets import SHARDY_PASSES


def abstract_mesh(mesh: TargetMesh) -> Any:
    """A JAX mesh without devices; their order plays no part in what Shardy decides."""
    # Lowering asks for a default device and so starts the backend in any case: better with the devices
    # that the target cpu will want next than with one. So many start in some milliseconds.
    simulate(min(mesh.mesh.size, 64))
    return AbstractMesh(mesh.jax_sizes, mesh.jax_names, axis_types=axis_types(mesh))


def ask(program: Program, report: Callable[[str], None]) -> Output:
    """The partitioned module. Raises what JAX and the passes raise."""
    report("lowering")
    # With no devices there is no platform to take; einsums lower alike for all of them.
    module = program.trace().lower(lowering_platforms=("tpu",)).compiler_ir("stablehlo")
    report("partitioning")
    question = program.question
    # Where XLA leaves what Shardy does inside it.
    folder = Path(question.folder, "shardy", "module_0000.jit_program")

    def dump(name: str) -> None:
        if question.dumps == "passes":
            (folder / f"{name}.mlir").write_text(str(module), encoding="utf-8")

    with module.context:
        if question.dumps == "passes":
            folder.mkdir(parents=True)
        dump("00.input")
        for number, name in enumerate(passes(module), 1):
            dump(f"{number:02}.after_{name}")
        located = module.operation.get_asm(enable_debug_info=True) if len(question.parts) > 1 else ""
    return Output(TargetResult("shardy", "ok", text=str(module)), located=located)


def passes(module: ir.Module) -> Iterator[str]:
    """Run Shardy's passes on a module, in whose context one is; the name of each that has run."""
    for name, pipeline in SHARDY_PASSES.items():
        PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        yield name


def change(module: ir.Module, change: ProgramChange) -> None:
    """Split an argument, a result, or what operations make, otherwise, or remove constraints or barriers."""
    if isinstance(change, ScheduleCandidate):
        for operation in [*operations_inside(module.operation)]:
            if str(operation.location) in change.removed:
                _remove(operation)
        return
    mesh = next(operation for operation in module.body.operations if operation.operation.name == "sdy.mesh")
    name = ir.StringAttr(mesh.attributes["sym_name"]).value
    dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in change.spec.dims)
    with module.context:
        sharding = ir.Attribute.parse(f"#sdy.sharding<@{name}, [{dims}]>")
        main = main_of(module)
        if change.result is not None:
            _set(main, "res_attrs", change.result, "sdy.sharding", sharding)
            if change.argument is not None:
                alias = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), change.result)
                _set(main, "arg_attrs", change.argument.number, "tf.aliasing_output", alias)
            return
        if change.argument is not None:
            number = change.argument.number
            own = _set(main, "arg_attrs", number, "sdy.sharding", sharding)
            if "tf.aliasing_output" in own:  # the result that takes its memory is split as it is
                result = ir.IntegerAttr(own["tf.aliasing_output"]).value
                _set(main, "res_attrs", result, "sdy.sharding", sharding)
            return
        for operation in [*operations_inside(module.operation)]:
            made_by = name_in(operation.location)
            if change.removed:
                if operation.name != "sdy.sharding_constraint" or str(operation.location) != change.removed:
                    continue
                if change.before is not None:
                    operation.attributes["sharding"] = sharding
                else:
                    _remove(operation)
            elif (
                operation.name.rpartition(".")[2] == change.opcode
                and made_by
                and change.made_by.endswith(made_by)
                and len(operation.results) == 1
                and tuple(ir.ShapedType(operation.results[0].type).shape) == change.shape
            ):
                # As JAX does: XLA drops an attribute, which would do for Shardy.
                (result,) = operation.results
                constraint = ir.Operation.create(
                    "sdy.sharding_constraint",
                    [result.type],
                    [result],
                    {"sharding": sharding},
                    loc=operation.location,
                    ip=ir.InsertionPoint(operation),
                )
                constraint.move_after(operation)
                result.replace_all_uses_except(constraint.results[0], [constraint])


def _remove(operation: Any) -> None:
    """Erase an operation that hands on its operands."""
    for result, operand in zip(operation.results, operation.operands, strict=True):
        result.replace_all_uses_with(operand)
    operation.erase()


def _set(main: Any, ends: str, number: int, name: str, attribute: Any) -> dict[str, Any]:
    """Give an argument (of "arg_attrs") or a result an attribute; returns those that it had."""
    every = [*ir.ArrayAttr(main.attributes[ends])]
    own = {named_attr.name: named_attr.attr for named_attr in ir.DictAttr(every[number])}
    every[number] = ir.DictAttr.get(own | {name: attribute})
    main.attributes[ends] = ir.ArrayAttr.get(every)
    return own


def main_of(module: ir.Module) -> Any:
    """The function that a module is called by."""
    named = (each for each in module.body.operations if "sym_name" in each.attributes)
    return next(each for each in named if ir.StringAttr(each.attributes["sym_name"]).value == "main")


def operations_inside(operation: Any) -> Iterator[Any]:
    """All operations in the regions of one, in the order of the text."""
    for region in operation.regions:
        for block in region:
            for inner in block.operations:
                yield inner.operation
                yield from operations_inside(inner.operation)
