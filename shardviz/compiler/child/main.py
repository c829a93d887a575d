"""The child process: loads JAX, then answers one call after the other until its parent is gone."""

from __future__ import annotations

import gc
import os
import sys
import threading
from importlib import import_module
from queue import SimpleQueue
from typing import Any, Literal, NoReturn

from shardviz import garbage
from shardviz.compiler.messages import Channel, ChildBroken, ChildCall, Versions, end_with_parent
from shardviz.errors import CompilerError, ShardvizError
from shardviz.lazy_names import LazyImports
from shardviz.targets import OLDEST_JAX, ProcessName, older_than, pip

with LazyImports():  # with JAX
    from shardviz.compiler.child import job

ALONE = "python -c 'import jax' loads it alone"


def main(read_fd: int, write_fd: int, name: ProcessName | Literal["file"], *address: str) -> None:
    """Serve the parent over two file descriptors. Returns only when JAX cannot be used. With an `address`,
    the words that `child.job.find` takes, this process joins the job that it belongs to; by the name "file"
    it is the process of a user's file, which serves one request."""
    end_with_parent()
    channel = Channel(read_fd, write_fd)
    if name == "file":
        _lower(channel)
    inbox: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(channel, inbox), daemon=True).start()
    try:
        _serve(channel, inbox, name, address)
    except Exception as error:
        channel.send(ChildBroken(f"{type(error).__name__}: {error}", ALONE))


def _lower(channel: Channel) -> NoReturn:
    """Serve one request for a function in a user's file, then end the process with all its threads."""
    try:
        _reply(channel, ChildCall("user_file.program", (channel.receive(),)))
    except Exception as error:  # all that the file raises is a ShardvizError by now
        channel.send(CompilerError(f"jax cannot be used here: {type(error).__name__}: {error}", ALONE))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _serve(channel: Channel, inbox: SimpleQueue[Any], name: ProcessName, address: tuple[str, ...]) -> None:
    gc.disable()  # what loads now stays: looking for garbage in it only delays
    import jax

    if older_than(jax.__version__, OLDEST_JAX):
        old = f"it is jax {jax.__version__}, and shardviz needs {OLDEST_JAX} or newer"
        channel.send(ChildBroken(old, pip("install", "-U", f"jax>={OLDEST_JAX}")))
        return
    # The text should name no files of this package, and an executable from a cache would leave no dump.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    jax.config.update("jax_enable_compilation_cache", False)
    found_job = job.find(*address) if address else None
    if found_job is not None:
        channel.send(found_job[0])
    versions: Versions = _function("answer.versions")(name)  # loads all that answers
    garbage.freeze()
    gc.enable()
    if found_job is not None:
        job.join(found_job, inbox.get())
    channel.send(versions)

    while True:
        call: ChildCall = inbox.get()
        if found_job is not None and not job.is_asked_alike(call):
            channel.send(ChildBroken())
            return
        _reply(channel, call)


def _function(name: str) -> Any:
    """A function of a file beside this one."""
    file, _, function = name.partition(".")
    return getattr(import_module(f"shardviz.compiler.child.{file}"), function)


def _reply(channel: Channel, call: ChildCall) -> None:
    try:
        channel.send(_function(call.function)(channel.send, *call.arguments))
    except ShardvizError as error:
        channel.send(error)


def _listen(channel: Channel, inbox: SimpleQueue[Any]) -> None:
    """Pass requests on. The parent's end closes however the parent dies, and then so does this process."""
    while True:
        try:
            inbox.put(channel.receive())
        except (EOFError, OSError):
            os._exit(0)
