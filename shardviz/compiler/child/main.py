"""The child process: loads JAX, then answers one request after the other until its parent is gone."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from shardviz.compiler.messages import (
    AskJob,
    AskLayout,
    Channel,
    ChildBroken,
    ChildReady,
    CompileModule,
    JoinJob,
    OtherRequest,
    PrintModules,
    Question,
    Reply,
    Request,
    RunCollective,
    StageReport,
    TimeLoop,
)
from shardviz.errors import CompilerError, ShardvizError
from shardviz.lazy_names import lazy_module
from shardviz.targets.installed import OLDEST_JAX, older_than

if TYPE_CHECKING:
    from shardviz.compiler.child import answer, collective, job, measuring, module, user_file
    from shardviz.targets import ProcessName
else:
    # With JAX, and each for the requests that need it.
    answer = lazy_module("shardviz.compiler.child.answer")
    collective = lazy_module("shardviz.compiler.child.collective")
    job = lazy_module("shardviz.compiler.child.job")
    measuring = lazy_module("shardviz.compiler.child.measuring")
    module = lazy_module("shardviz.compiler.child.module")
    user_file = lazy_module("shardviz.compiler.child.user_file")

_PR_SET_PDEATHSIG = 1
ALONE = "python -c 'import jax' loads it alone"


def main(read_fd: int, write_fd: int, name: ProcessName, *address: str) -> None:
    """Serve the parent over two file descriptors. Returns only when JAX cannot be used.

    With an `address`, the words that `child.job.find` takes, this process joins the job that it belongs to.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    if name in ("tpu", "cuda"):
        # What XLA cannot dump to stdout it puts into a folder "-", unless nobody can make one here.
        os.chdir("/proc")
    channel = Channel(read_fd, write_fd)
    inbox: SimpleQueue[Request] = SimpleQueue()
    threading.Thread(target=_listen, args=(channel, inbox), daemon=True).start()
    try:
        _serve(channel, inbox, name, address)
    except Exception as error:
        channel.send(ChildBroken(f"{type(error).__name__}: {error}", ALONE))


def lower_user_file(read_fd: int, write_fd: int) -> None:
    """Serve one request for a function in a user's file (child/user_file.py), then end the process with all
    threads that the file has left."""
    end_with_parent()
    channel = Channel(read_fd, write_fd)
    request: Any = channel.receive()
    try:
        channel.send(user_file.UserFile(request).program())
    except ShardvizError as error:
        channel.send(error)
    except Exception as error:  # all that the file raises is a ShardvizError by now
        channel.send(CompilerError(f"jax cannot be used here: {type(error).__name__}: {error}", ALONE))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _serve(
    channel: Channel, inbox: SimpleQueue[Request], name: ProcessName, address: tuple[str, ...]
) -> None:
    gc.disable()  # what loads now stays: looking for garbage in it only delays
    import jax

    if older_than(jax.__version__, OLDEST_JAX):
        old = f"it is jax {jax.__version__}, and shardviz needs {OLDEST_JAX} or newer"
        channel.send(ChildBroken(old, f"pip install -U 'jax>={OLDEST_JAX}'"))
        return
    found = None
    if address:
        found = job.find(*address)
        if found is not None:
            channel.send(found)
    ready = ChildReady(answer.versions(name))  # with all that answers
    gc.freeze()
    gc.enable()
    if found is not None:
        join = inbox.get()
        assert isinstance(join, JoinJob)
        job.join(join.coordinator)
    channel.send(ready)

    def report(stage: str) -> None:
        channel.send(StageReport(stage))

    while True:
        asked = inbox.get()
        if found is not None and not job.is_asked_alike(asked):
            channel.send(OtherRequest())
            return
        try:
            channel.send(_reply(asked, name, report))
        except ShardvizError as error:
            channel.send(error)


def _reply(asked: Request, name: ProcessName, report: Callable[[str], None]) -> Reply:
    """The answer to a request."""
    match asked:
        case Question():
            return answer.answer(asked, report)
        case CompileModule():
            return module.compile_module(asked, report)
        case RunCollective():
            return collective.run(asked, report)
        case TimeLoop():
            return measuring.measure(asked, report)
        case AskLayout():
            return answer.layout(asked)
        case AskJob():
            return job.devices()
        case PrintModules(protos):
            return answer.module_texts(protos)
        case _:
            return answer.about(name)


def _listen(channel: Channel, inbox: SimpleQueue[Request]) -> None:
    """Pass requests on. The parent's end closes however the parent dies, and then so does this process."""
    while True:
        try:
            request = channel.receive()
        except (EOFError, OSError):
            os._exit(0)
        assert isinstance(request, Request)
        inbox.put(request)


def end_with_parent() -> None:
    """On Linux, be killed with the parent even while a compiler holds the interpreter lock."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
