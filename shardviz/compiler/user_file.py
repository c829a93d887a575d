"""A function in a file of the user's, which is run and lowered in a process of its own."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardviz.compiler.child_process import COMPILERS_CHILD, ChildProcess, simulating
from shardviz.errors import CompilerError, QuestionError, ShardvizError, quote
from shardviz.reports.lowered_module import LoweredModule, ProgramValues
from shardviz.sharding import Mesh
from shardviz.user_files import EXAMPLES, example_program, is_folder, open_file

HINT = (
    f"write FILE.py:FUNCTION, or the name of an example: {', '.join(p.stem for p in EXAMPLES.glob('*.py'))}"
)


@dataclass(frozen=True)
class UserFileRequest:
    """To the process: call `function` of `file` with a mesh and `keywords`, within `seconds` where they are
    not 0, and lower what it returns for `platforms`. With the code of a `reference`, a function of the same
    arguments, the program also runs on them, filled with small whole numbers; `with_values` it only runs, on
    simulated devices, for the values of its lines."""

    file: str
    function: str
    mesh: Mesh
    platforms: tuple[str, ...]
    is_explicit: bool = False
    keywords: tuple[tuple[str, Any], ...] = ()
    reference: str = ""
    seconds: float = 0.0
    with_values: bool = False


@dataclass(frozen=True)
class UserProgram:
    """From the process: the program by platform, or why JAX does not lower it for that one; the first device
    that ends with other numbers than the reference gives, as a sentence, "" where none does; and the values
    of its lines, where they are asked for."""

    lowered: Mapping[str, LoweredModule | ShardvizError]
    difference: str = ""
    values: ProgramValues | None = None

    @property
    def meshes(self) -> tuple[Mesh, ...]:
        modules = [module for module in self.lowered.values() if not isinstance(module, ShardvizError)]
        return tuple(dict.fromkeys(mesh for module in modules for mesh in module.meshes))

    def lowered_for(self, platform: str) -> LoweredModule:
        """The program for a platform; raises what kept JAX from lowering it."""
        lowered = self.lowered[platform]
        if isinstance(lowered, ShardvizError):
            raise lowered
        return lowered


def names_function(text: str) -> bool:
    """Return whether it names a function of a file, or an example, and nothing that can be read."""
    file, colon, _ = text.rpartition(":")
    is_example = example_program(text) is not None
    return (file if colon else text).endswith(".py") or (is_example and not Path(text).is_file())


def find_function(text: str) -> tuple[str, str]:
    """The file and the function that ``FILE.py:FUNCTION`` or the name of an example means; the file is read,
    not run. Raises `QuestionError` for a text that is neither, and for a file that is not there."""
    file, colon, function = text.rpartition(":")
    if not file:
        if example := example_program(text):
            return str(example), text
        if colon or not text.endswith(".py"):
            raise QuestionError(f"{quote(text)} does not name a function of a file", HINT)
        file = text
    path = Path(file)
    if is_folder(path):
        raise QuestionError(f"{quote(file)} is a folder", "name a file in it: FILE.py:FUNCTION")
    try:
        open_file(path).close()
    except FileNotFoundError:
        raise QuestionError(f"file {quote(file)} does not exist", HINT) from None
    except OSError as error:
        raise QuestionError(f"cannot read {quote(file)}: {error.strerror}", HINT) from None
    named = functions_of(path)
    if not colon:
        told = f"such as {file}:{named[-1]}" if named else "it defines none"
        raise QuestionError(f"no function of {quote(file)} is named", f"add one, {told}")
    if not function.isidentifier():
        raise QuestionError(f"{quote(function)} is not the name of a function", HINT)
    return file, function


def _parsed(file: Path) -> ast.Module:
    """The code of a file; none of one that is not Python."""
    try:
        with open_file(file) as opened:
            return ast.parse(opened.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def spec_axes(file: Path) -> list[str]:
    """The axes that a file names in its specs, ``P("data", None)``, in order of first appearance."""
    calls = (node for node in ast.walk(_parsed(file)) if isinstance(node, ast.Call))
    specs = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in ("P", "PartitionSpec")]
    words = [node for spec in specs for node in ast.walk(spec) if isinstance(node, ast.Constant)]
    words.sort(key=lambda node: (node.lineno, node.col_offset))
    return [*dict.fromkeys(node.value for node in words if isinstance(node.value, str))]


def functions_of(file: Path, of_mesh: bool = False) -> list[str]:
    """The functions that a file defines, in order, or those to call with a mesh alone; none if not Python."""

    def takes_one(args: ast.arguments) -> bool:
        named = len(args.posonlyargs) + len(args.args)
        needed = named - len(args.defaults)
        return needed <= 1 and (named > 0 or args.vararg is not None) and None not in args.kw_defaults

    functions = (stmt for stmt in _parsed(file).body if isinstance(stmt, ast.FunctionDef))
    return [function.name for function in functions if not of_mesh or takes_one(function.args)]


class UserFileProcess:
    """The process of one request, which begins at once. What the file prints goes to the file descriptor
    `output`, nowhere without one."""

    def __init__(
        self, request: UserFileRequest, environment: Mapping[str, str], output: int | None = 2
    ) -> None:
        self._request = request
        self._child = ChildProcess(COMPILERS_CHILD, simulating(environment), "file", output=output)
        with suppress(BrokenPipeError):  # it has ended already, and `result` says how
            self._child.send(request)

    def result(self, time_limit: float, hint: str = "give it longer with a larger --timeout") -> UserProgram:
        """Wait for the program, at most `time_limit` seconds; after that the `hint` says what to do. Raises
        `QuestionError` for what is wrong with the file, `CompilerError` where it ends the process."""
        name = quote(self._request.file)
        try:
            reply = self._child.receive(None if math.isinf(time_limit) else time_limit)
        except TimeoutError:
            problem = f"{name} took longer than {time_limit:g} s and was stopped"
            raise CompilerError(problem, hint) from None
        except EOFError:
            how = self._child.reap()[0].replace("ended with", "ended the process with")
            raise CompilerError(f"{name} {how}", f"python {self._request.file} runs it alone") from None
        finally:
            self._child.reap()
        if isinstance(reply, ShardvizError):
            raise reply
        assert isinstance(reply, UserProgram)
        return reply

    def kill(self) -> None:
        """End the process with all that it started. Takes no lock, for a signal handler."""
        self._child.kill()
