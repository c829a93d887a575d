"""A process that runs programs: each in a fork of its own, so that JAX is loaded once for all of them.

It is started as a script. Each line on stdin is the path of a program; for each, a line on stdout says with
which code it ended. The program finds itself in its own folder, where the files ``out`` and ``err`` get what
it prints. No device was asked for before the fork, so a program may still choose them.
"""

from __future__ import annotations

import os
import resource
import runpy
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

MAX_BYTES = 16_000_000
"""No file that a program writes may be longer, what it prints included."""


def main() -> None:
    """Returns after the last line, and in a fork after its program."""
    for line in iter(sys.stdin.readline, ""):
        path = Path(line.removesuffix("\n"))
        if "jax" in path.read_text(encoding="utf-8"):
            with suppress(ImportError):
                import_module("jax.numpy")
        fork = os.fork()
        if not fork:
            _alone_in(path.parent)
            runpy.run_path(str(path), run_name="__main__")
            return
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)


def _alone_in(folder: Path) -> None:
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES))
    streams = (os.open(os.devnull, os.O_RDONLY), _new_file("out"), _new_file("err"))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def _new_file(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


if __name__ == "__main__":
    main()
