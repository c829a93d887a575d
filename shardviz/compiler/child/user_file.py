"""The process of a user's file, which may print, import anything, hang or end the process: it lowers what the
function returns, or says what is wrong with the file and in which line."""

from __future__ import annotations

import ast
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType

from shardviz.compiler.child.source_changes import Again, Refused
from shardviz.compiler.lowering import MAX_WORDS, jaxs_own, lower_program, refusal_of, stage_of
from shardviz.compiler.user_file import UserFileRequest, UserProgram, functions_of
from shardviz.errors import QuestionError, ShardvizError, did_you_mean, one_line, quote
from shardviz.hlo.text.source_locations import LIBRARY
from shardviz.lazy_names import LazyImports
from shardviz.reports.lowered_module import LoweredModule, ProgramValues
from shardviz.targets import MAX_CPU_DEVICES, OLDEST_JAX, older_than, pip

with LazyImports():  # no other request runs anything
    from shardviz.compiler.child import line_values

_OURS = str(Path(__file__).parents[2])
RETURNS = "let it end with: return function, argument, argument, …, or return jitted.lower(…)"


def program(_report: Callable[[str], None], request: UserFileRequest) -> UserProgram:
    """Run the file of a request, and lower its program for each platform."""
    return _UserFile(request).program()


class _UserFile:
    """A file, and the function in it that is asked for."""

    def __init__(self, request: UserFileRequest) -> None:
        self.request = request
        self.path = Path(request.file).resolve()
        # Axes that the program names and `request` does not: of size 1.
        self._ones: list[str] = []
        # What the file has lowered or compiled, by its id, and what of: that is lowered for each target.
        self._made_of: dict[int, tuple[Any, Any]] = {}

    def program(self) -> UserProgram:
        request = self.request
        self._keep_stages()
        if older_than(jax.__version__, OLDEST_JAX):
            problem = f"it is jax {jax.__version__} here, and shardviz needs {OLDEST_JAX} or newer"
            raise QuestionError(problem, pip("install", "-U", f"jax>={OLDEST_JAX}"))
        jax.config.update("jax_traceback_filtering", "off")  # an error is told by what JAX was doing
        if request.seconds:
            signal.signal(signal.SIGALRM, signal.default_int_handler)  # as if interrupted, which nobody can
            signal.setitimer(signal.ITIMER_REAL, request.seconds)
        _simulate(request.mesh.size)
        with self._blamed(f"running {request.file}"):
            module = self._module()
        function = self._function(module)
        _simulate(request.mesh.size)  # the file may have asked for others
        keywords = dict(request.keywords)
        self._check_takes(function, keywords)
        while True:
            try:
                return self._called(function, keywords)
            except QuestionError as error:
                if not (missing := self._missing_axes(error)):
                    raise
                self._ones += missing

    def _called(self, function: Callable[..., Any], keywords: Mapping[str, Any]) -> UserProgram:
        request, mesh = self.request, self._mesh()
        given = ", ".join(["mesh", *(f"{name}={value!r}" for name, value in keywords.items())])
        with self._blamed(f"calling {request.function}({given})"):
            returned = function(mesh, **keywords)
        program, args = self._checked(returned)
        if request.with_values:
            if stage_of(program):
                raise QuestionError(f"{self._return()}what is lowered has no lines to run", RETURNS)
            with self._blamed(f"running what {request.function} returns"), jax.set_mesh(mesh):
                lines = line_values.line_values(program, args, mesh, self._is_own)
            return UserProgram({}, values=ProgramValues(request.mesh, lines, jax.__version__))

        def again(shape: Sequence[int], other: Sequence[int]) -> LoweredModule:
            def wider(leaf: Any) -> Any:
                is_meant = bool(shape) and getattr(leaf, "shape", None) == shape
                return jax.ShapeDtypeStruct(other, leaf.dtype, sharding=leaf.sharding) if is_meant else leaf

            program, args = self._checked(function(mesh, **keywords))
            return _traced(program, jax.tree.map(wider, args), mesh, request.platforms[0])

        asked = None if request.reference else again
        lowered = {request.platforms[0]: self._lowered(program, args, mesh, request.platforms[0], asked)}
        lowered |= {name: self._lowered(program, args, mesh, name) for name in request.platforms[1:]}
        errors = [outcome for outcome in lowered.values() if isinstance(outcome, ShardvizError)]
        if len(errors) == len(lowered):
            raise errors[0]
        return UserProgram(lowered, self._difference(program, args, mesh) if request.reference else "")

    def _difference(self, program: Any, args: Sequence[Any], mesh: Any) -> str:
        """The first device whose part of the result is not that of the reference; "" where there is none."""
        random = np.random.default_rng(0)
        whole = [(random.permutation(arg.size) % 97 + 1).reshape(arg.shape).astype(arg.dtype) for arg in args]
        with self._blamed(f"running what {self.request.function} returns"), jax.set_mesh(mesh):
            placed = [jax.device_put(value, arg.sharding) for value, arg in zip(whole, args, strict=True)]
            results = jax.block_until_ready(jax.tree.leaves(jax.jit(program)(*placed)))
        reference = eval(self.request.reference, {"jax": jax, "jnp": jnp})
        wanted = jax.tree.leaves(reference(*map(jnp.asarray, whole)))
        if not results:
            return "the function returns nothing"
        ours, theirs = (", ".join(str(values.shape) for values in arrays) for arrays in (results, wanted))
        if ours != theirs:
            return f"the result has the shape {ours}; the lesson wants {theirs}"
        for number, (array, right) in enumerate(zip(results, wanted, strict=True), 1):
            for shard in array.addressable_shards:
                pair = np.asarray(shard.data), np.asarray(right)[shard.index]
                wrong = np.argwhere(~np.isclose(*pair, rtol=1e-4, atol=1e-4))
                if wrong.size:
                    is_small = pair[0].size <= 8
                    shown = (values if is_small else values[tuple(wrong[0])] for values in pair)
                    ours, theirs = (", ".join(f"{one:g}" for one in values.ravel()) for values in shown)
                    where = "" if is_small else f" at {wrong[0].tolist()} of its part"
                    where += f" of result {number}" if len(results) > 1 else ""
                    return f"device {shard.device.id} ends with {ours}{where}; the lesson wants {theirs}"
        return ""

    def _lowered(
        self, program: Any, args: Sequence[Any], mesh: Any, platform: str, again: Again | None = None
    ) -> LoweredModule | ShardvizError:
        try:
            with self._blamed(f"tracing what {self.request.function} returns", again):
                module = _traced(program, args, mesh, platform)
        except ShardvizError as error:
            return error
        if module.meshes or mesh.size == 1:
            note = f"axes that --mesh does not name have size 1: {', '.join(self._ones)}"
            return replace(module, notes=(*module.notes, *[note] * bool(self._ones)))
        problem = f"{self._return()}nothing that {self.request.function} returns has a sharding on the mesh"
        hint = "give an argument sharding=NamedSharding(mesh, P(…)), or the jit in_shardings"
        return QuestionError(problem, hint)

    def _module(self) -> ModuleType:
        """The file as a module, which finds what lies beside it, as a script does."""
        sys.path.insert(0, str(self.path.parent))
        spec = spec_from_file_location(self.path.stem, self.path)
        if spec is None or spec.loader is None:
            raise QuestionError(f"{quote(self.request.file)} is not a file of Python", "its name ends in .py")
        module = sys.modules[self.path.stem] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def _function(self, module: ModuleType) -> Callable[..., Any]:
        name = self.request.function
        attribute: Callable[..., Any] | None = getattr(module, name, None)
        if callable(attribute):
            return attribute
        if attribute is not None:
            problem = f"{name} of {quote(self.request.file)} is {_kind(attribute)}, not a function"
            raise QuestionError(problem, "name a function that takes the mesh")
        named = functions_of(self.path)
        told = f"it has {', '.join(named)}" if named else "write one that takes the mesh"
        problem = f"{quote(self.request.file)} has no function {name}"
        raise QuestionError(problem, f"{did_you_mean(name, named)}{told}")

    def _checked(self, returned: Any) -> tuple[Any, tuple[Any, ...]]:
        """The program and its arguments among what the function has returned."""
        name, where = self.request.function, self._return()
        if stage_of(returned):
            while id(jaxs_own(returned)) in self._made_of:
                _, returned = self._made_of[id(jaxs_own(returned))]
            return returned, ()
        if not isinstance(returned, tuple | list) or not returned:
            what = "a function alone" if callable(returned) else f"{_kind(returned)}, not a function"
            with_arguments = "without its arguments" if callable(returned) else "and its arguments"
            raise QuestionError(f"{where}{name} returned {what} {with_arguments}", RETURNS)
        program, *args = returned
        if not callable(program) and not hasattr(program, "lower"):
            problem = f"{where}what {name} returned begins with {_kind(program)}, not with a function"
            raise QuestionError(problem, RETURNS)
        return program, tuple(args)

    def _missing_axes(self, error: ShardvizError) -> list[str]:
        """The axes for whose lack JAX raised an error; none where one may be a slip of the pen."""
        names = (*self._ones, *self.request.mesh.axis_names)
        match = re.search(r"Resource axis: .* is not found in mesh", error.message)
        named = re.findall(r"'(\w+)'", match[0]) if match else []
        missing = [axis for axis in named if axis not in names]
        return [] if any(did_you_mean(axis, names) for axis in missing) else [*dict.fromkeys(missing)]

    def _mesh(self) -> Any:
        """The mesh, of simulated devices; one without devices where they do not suffice."""
        request = self.request
        names = (*self._ones, *request.mesh.axis_names)
        sizes = (*[1] * len(self._ones), *request.mesh.axis_sizes)
        types = (AxisType.Explicit if request.is_explicit else AxisType.Auto,) * len(names)
        count = request.mesh.size
        devices = jax.devices() if count <= MAX_CPU_DEVICES else []
        if len(devices) < count:
            return AbstractMesh(sizes, names, axis_types=types)
        grid = np.array(devices[:count], dtype=object).reshape(sizes)
        return jax.sharding.Mesh(grid, names, axis_types=types)

    def _keep_stages(self) -> None:
        def remember(stage: Any, name: str) -> None:
            def made(before: Any, *args: Any, **named: Any) -> Any:
                after = make(before, *args, **named)
                self._made_of[id(after)] = after, before
                return after

            make = getattr(stage, name)
            setattr(stage, name, made)

        remember(jax.stages.Traced, "lower")
        remember(jax.stages.Lowered, "compile")

    def _check_takes(self, function: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
        """Complain about a function that cannot be called with the mesh and keywords, such as the step."""
        name = self.request.function
        try:
            taken = signature(function)
        except (TypeError, ValueError):  # a function of C says nothing of its arguments
            return
        try:
            taken.bind(None, **keywords)
        except TypeError as error:
            for other in (keyword for keyword in keywords if keyword not in taken.parameters):
                problem = f"{name} has no parameter {other}: it takes {', '.join(taken.parameters)}"
                hint = f"write def {name}(mesh, {other}={keywords[other]!r})"
                hint = f"{did_you_mean(other, taken.parameters)}{hint}"
                raise QuestionError(f"{self._return()}{problem}", hint) from None
            alone = "the mesh and these values" if keywords else "the mesh"
            raise QuestionError(
                f"{self._return()}{name} does not take {alone} alone: {error}",
                "FUNCTION takes the mesh, and returns the function to compile and its arguments: "
                f"def program(mesh): return {name}, argument, argument, …",
            ) from None

    def _return(self) -> str:
        """``FILE:12: `` with the line in which the function returns; "" where it is not in the file."""
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for stmt in ast.parse(self.path.read_bytes()).body:
                if isinstance(stmt, ast.FunctionDef) and stmt.name == self.request.function:
                    lines = [one.lineno for one in ast.walk(stmt) if isinstance(one, ast.Return)]
                    return f"{self.request.file}:{max(lines, default=stmt.lineno)}: "
        return ""

    @contextmanager
    def _blamed(self, doing: str, again: Again | None = None) -> Iterator[None]:
        """A context whose exceptions become errors with the line of the file, and where they are about
        shardings with what JAX accepts `again`."""
        try:
            yield
        except ShardvizError:
            raise
        except SystemExit as error:
            problem = f"{self._place(error)}it ends the process with sys.exit({error.code!r})"
            raise QuestionError(problem, f"while {doing}") from None
        except BaseException as error:
            if self.request.seconds and isinstance(error, KeyboardInterrupt):
                problem = f"{self._place(error)}it takes longer than {self.request.seconds:g} s"
                raise QuestionError(problem, "look for a loop that does not end") from None
            if again and (refused := Refused.by(error, self._is_own, str(self.path))):
                raise refused.refusal(self._place, again) from None
            # A fault of syntax appends the place, which stands in front; an address is another in each run.
            said = error.msg if isinstance(error, SyntaxError) else re.sub(" at 0x[0-9a-f]+", "", str(error))
            frames = traceback.extract_tb(error.__traceback__)
            nothing = f"no message, from {quote(frames[-1].line or '', MAX_WORDS)}"
            words = one_line(said, MAX_WORDS) or one_line(nothing, MAX_WORDS)
            hint = f"raised while {doing}"
            # The file of a library other than JAX that raised it is told too.
            not_told = (_OURS, str(Path(jax.__file__).parent), "<")
            others = [frame for frame in frames if not frame.filename.startswith(not_told)]
            if others and not self._is_own(others[-1].filename):
                hint += f", in {others[-1].filename}:{others[-1].lineno}"
            if isinstance(error, ModuleNotFoundError):
                hint = f"shardviz runs the file with {sys.executable}: install the module for it"
            raise QuestionError(f"{self._place(error)}{type(error).__name__}: {words}", hint) from None

    def _place(self, error: BaseException) -> str:
        """``FILE:12: `` with the last line of the user's own that an exception came through, else that in
        which the function returns."""
        if isinstance(error, SyntaxError) and error.filename == str(self.path) and error.lineno:
            return f"{self.request.file}:{error.lineno}: "
        own = [each for each in traceback.extract_tb(error.__traceback__) if self._is_own(each.filename)]
        if not own:
            return self._return() or f"{self.request.file}: "
        file = self.request.file if own[-1].filename == str(self.path) else own[-1].filename
        return f"{file}:{own[-1].lineno}: "

    def _is_own(self, file: str) -> bool:
        """Return whether a file is the user's, neither an installed package's nor one of ours."""
        return file == str(self.path) or not (LIBRARY.search(file) or file.startswith((_OURS, "<")))


def _traced(program: Any, args: Sequence[Any], mesh: Any, platform: str) -> LoweredModule:
    """The program, traced with the mesh in context: libraries leave their constraints out without one."""
    with ExitStack() as contexts:
        if isinstance(mesh, AbstractMesh):
            contexts.enter_context(jax.sharding.use_abstract_mesh(mesh))
        else:
            contexts.enter_context(jax.set_mesh(mesh))
            # Some libraries look for the older context alone.
            contexts.enter_context(warnings.catch_warnings(action="ignore", category=DeprecationWarning))
            contexts.enter_context(mesh)
        try:
            return lower_program(program, args, {}, platform)
        except Exception as error:
            failure = error
    try:
        module = lower_program(program, args, {}, platform)
    except Exception:
        raise failure from None
    words = refusal_of(failure).message.partition(": ")[2]
    note = f"it is traced without a mesh in context, and constraints that look for one are left out: {words}"
    return replace(module, notes=(note,))


def _kind(value: Any) -> str:
    return f"a value of the type {type(value).__name__}"


def _simulate(count: int) -> None:
    """Have as many simulated devices; once a backend has started, they are as many as they are."""
    with suppress(RuntimeError):
        if count <= MAX_CPU_DEVICES:
            jax.config.update("jax_num_cpu_devices", count)
