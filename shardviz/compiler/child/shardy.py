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
from shardviz.reports.lowered_module import ShardingCandidate, name_in
from shardviz.reports.target_result import TargetResult
from shardviz.targets import SHARDY_PASSES

EARLY_DEVICES = 64
"""As many simulated devices start in some milliseconds."""


def abstract_mesh(mesh: TargetMesh) -> Any:
    """A JAX mesh without devices; their order plays no part in what Shardy decides."""
    # Lowering asks for a default device and so starts the backend in any case: better with the devices
    # that the target cpu will want next than with one.
    simulate(min(mesh.mesh.size, EARLY_DEVICES))
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
    """Run Shardy's passes on a module, in whose context one is; the name of each that has run. Raises what
    they raise."""
    for name, pipeline in SHARDY_PASSES.items():
        PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        yield name


def change(module: ir.Module, change: ShardingCandidate) -> None:
    """Split an argument, or what some operations make, in another way."""
    mesh = next(operation for operation in module.body.operations if operation.operation.name == "sdy.mesh")
    name = ir.StringAttr(mesh.attributes["sym_name"]).value
    dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in change.spec.dims)
    with module.context:
        sharding = ir.Attribute.parse(f"#sdy.sharding<@{name}, [{dims}]>")
        if change.argument is not None:
            main = main_of(module)
            every = [*ir.ArrayAttr(main.attributes["arg_attrs"])]
            own = {each.name: each.attr for each in ir.DictAttr(every[change.argument.number])}
            every[change.argument.number] = ir.DictAttr.get(own | {"sdy.sharding": sharding})
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(every)
            return
        for operation in [*operations_inside(module.operation)]:
            made_by = name_in(operation.location)
            if (
                operation.name.rpartition(".")[2] == change.opcode
                and made_by
                and change.made_by.endswith(made_by)
                and len(operation.results) == 1
                and tuple(ir.ShapedType(operation.results[0].type).shape) == change.shape
            ):
                _constrain(operation, sharding)


def main_of(module: ir.Module) -> Any:
    """The function that a module is called by."""
    functions = (operation for operation in module.body.operations if "sym_name" in operation.attributes)
    return next(
        function for function in functions if ir.StringAttr(function.attributes["sym_name"]).value == "main"
    )


def _constrain(operation: Any, sharding: Any) -> None:
    """Constrain the result of an operation as JAX does; XLA drops an attribute, which would do for Shardy."""
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


def operations_inside(operation: Any) -> Iterator[Any]:
    """All operations in the regions of one, in the order of the text."""
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                yield each.operation
                yield from operations_inside(each.operation)
