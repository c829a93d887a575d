"""Set up once for all tests: what JAX and Textual read when a test first imports them."""

from __future__ import annotations

import gc
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib.metadata import version
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from shardviz import garbage
from shardviz.api import shared_worker
from shardviz.compiler import Cancelled, Worker, child_process, worker as worker_client
from shardviz.compiler.worker_process import WorkerProcess
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner
from shardviz.planner.problem import Problem
from shardviz.targets import ProcessName, older_than
from tests.forked_files import ForkServer

# Eight simulated devices; and code that runs once need not be fast, but soon there.
_FLAGS = ["--xla_force_host_platform_device_count=8", "--xla_backend_optimization_level=0"]

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = " ".join(
    [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in flag] + _FLAGS
)

# Else each of the many processes of the tests would compile all that it imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same colours in every terminal, and a frame as soon as there is something to draw.
os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
os.environ["TEXTUAL_FPS"] = "1000"
os.environ.pop("NO_COLOR", None)

# What is ignored here, as under nohup or in the background, would be ignored in each process of a test.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis measures wall-clock time: on a busy machine an example may take as long as it takes.
_ON_ANY_MACHINE: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same examples", **_ON_ANY_MACHINE, derandomize=True, max_examples=25)
settings.register_profile(
    "new examples", **_ON_ANY_MACHINE, derandomize=False, max_examples=40, print_blob=True
)


def _has_new_examples(config: pytest.Config) -> bool:
    """Whether Hypothesis makes other examples in each run: not in the one that a newcomer types, which leaves
    the slow tests out."""
    return config.option.markexpr != "not slow"


def examples(count: int) -> settings:
    """For a property that is tested with so many examples where they are new, else with a quarter of them."""
    return settings(max_examples=count // 4 if settings.default.derandomize else count)


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests are imported: `@settings` begins with the profile that is loaded by then."""
    settings.load_profile("new examples" if _has_new_examples(config) else "same examples")
    if not _has_new_examples(config) and hasattr(providers, "_local_constants"):
        # Constants of all modules that are loaded by then: to find them takes seconds, and with them the
        # examples are others where other tests ran before.
        none = providers._local_constants
        vars(providers)["_get_local_constants"] = lambda: none


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait, for a process that loads or for a terminal."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what holds of later releases of jax than the one at hand. Properties are tested in the slow run,
    too, with new examples."""
    for item in items:
        if _has_new_examples(config) and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow)
        if since := item.get_closest_marker("since_jax"):
            release, reason = since.args
            skipped = pytest.mark.skipif(older_than(version("jax"), release), reason=reason)
            item.add_marker(skipped)


def pytest_collection_finish() -> None:
    """What is loaded by now stays: Python looks for circles of objects in the rest alone, and seldom."""
    gc.collect()
    garbage.freeze()
    gc.set_threshold(100_000, 20, 100)


_HOMES = count()


@pytest.fixture(autouse=True)
def no_state_of_before(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions, progress and keys of nobody: none of other tests, and none of the person who runs them."""
    home = tmp_path_factory.getbasetemp() / f"home{next(_HOMES)}"
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))


MATRIX_SPECS = ("__", "X_", "Y_", "_X", "_Y", "XY", "YX", "(XY)_", "(YX)_", "_(XY)", "_(YX)")
"""Every way to split a matrix over two axes: each on a dimension or on none, in either order."""


def covering(*values: Sequence[object]) -> list[Any]:
    """Every combination of values as parameters; in the few that are not slow, each value stands once."""
    few = {tuple(number % len(each) for each in values) for number in range(max(map(len, values)))}
    return [
        pytest.param(
            *(each[index] for each, index in zip(values, place, strict=True)),
            marks=() if place in few else pytest.mark.slow,
        )
        for place in product(*(range(len(each)) for each in values))
    ]


def one_in(number: int, values: Iterable[object]) -> list[Any]:
    """Values as parameters, of which only one in so many is not slow, the last."""
    return one_row_in(number, [(value,) for value in values])


def one_row_in(number: int, rows: Iterable[Sequence[object]]) -> list[Any]:
    """The same for rows of several parameters."""
    listed = [*rows]
    assert not any(hasattr(value, "marks") for row in listed for value in row), "give values without marks"
    return [
        pytest.param(*row, marks=() if place % number == 0 else pytest.mark.slow)
        for place, row in zip(range(len(listed) - 1, -1, -1), listed, strict=True)
    ]


_COLLECTIVE = re.compile(
    r" (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(.*"
    r"(replica_groups|source_target_pairs)=(.*?)(?:, \w+=.*)?$",
    re.MULTILINE,
)
"""One in a line of HLO, with its groups, however the release of jaxlib writes them, or its pairs."""


@cache
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator

    from shardviz.documents.fields import schema_of

    return Draft202012Validator(schema_of(kind))


def _abridged(value: Any) -> Any:
    """A document without the middle of its long lists, whose entries are alike."""
    if isinstance(value, dict):
        return {name: _abridged(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_abridged(each) for each in (value if len(value) <= 20 else (*value[:10], *value[-10:]))]
    return value


@pytest.fixture(scope="session", autouse=True)
def documents_keep_to_their_schemas() -> Iterator[None]:
    """Every JSON document that a test makes in this process is valid by the schema of its kind."""
    from shardviz.documents.fields import DocumentKind

    made = DocumentKind.document
    known = set()

    def valid(self: DocumentKind, *of: object, **more: object) -> dict[str, Any]:
        document = made(self, *of, **more)
        text = json.dumps(_abridged(document))
        if (self.name, text) not in known:
            _validator(self.name).validate(json.loads(text))
            known.add((self.name, text))
        return document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DocumentKind, "document", valid)
        yield


@pytest.fixture(scope="session", autouse=True)
def plans_are_made_once() -> Iterator[None]:
    """Many tests look at one plan: it is made for the first of them. The planner's own tests plan anew."""
    plans: dict[tuple[object, ...], Plan] = {}

    def kept(self: Planner, problem: Problem) -> Plan:
        key = (self.mesh, self.placed, self.objective, self.anywhere, self.is_bounded, problem)
        if key not in plans:
            plans[key] = OWN_PLAN(self, problem)
        return plans[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Planner, "plan", kept)
        yield


OWN_PLAN = Planner.plan


@pytest.fixture(scope="session")
def worker(processes_are_forks: None) -> Iterator[Worker]:  # noqa: ARG001 - it ends before what forks
    """The compilers of this test process: loading JAX is most of what a question costs."""
    with Worker() as shared:
        yield shared


ASKERS = (shared_worker, worker_client)
"""The modules whose `Worker` the surfaces ask."""


@pytest.fixture(scope="session", autouse=True)
def everybody_asks_the_same_compilers(worker: Worker) -> Iterator[None]:
    """What a command, a call or a screen in this process asks, goes to these, unless it asks in a job or an
    environment of its own; to end its own ends none.

    Answers are kept by each asker alone. The tests' modules have the true `Worker`.
    """

    class Asking(Worker):
        def _process(self, name: ProcessName) -> WorkerProcess:
            if self._closed:
                raise Cancelled("the worker was closed")
            is_in_job = name == "real" and self._job_address is not None
            shares = self._environment is os.environ and not is_in_job
            return worker._process(name) if shares else super()._process(name)

    with pytest.MonkeyPatch.context() as patch:
        for module in ASKERS:
            patch.setattr(module, "Worker", Asking)
        yield


@pytest.fixture(scope="session", autouse=True)
def processes_are_forks() -> Iterator[None]:
    """Users' files and compilers run in forks of one process that has loaded JAX."""
    server = ForkServer()
    with pytest.MonkeyPatch.context() as patch, closing(server):
        patch.setattr(child_process, "subprocess", server.subprocess)
        yield


@pytest.fixture
def own_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the processes themselves: each is started as in a user's process."""
    for module in ASKERS:
        monkeypatch.setattr(module, "Worker", Worker)
    monkeypatch.setattr(child_process, "subprocess", subprocess)


@pytest.fixture(scope="session")
def collectives_in() -> Callable[[str], list[tuple[str, tuple[tuple[int, ...], ...]]]]:
    """Kind, and groups or pairs, of each collective in HLO, sorted: independent ones have no order."""
    from shardviz.hlo.replica_groups import parse_pairs, parse_replica_groups

    def found(text: str) -> list[tuple[str, tuple[tuple[int, ...], ...]]]:
        return sorted(
            (kind, parse_replica_groups(ids, 0).expand() if key == "replica_groups" else parse_pairs(ids))
            for kind, key, ids in _COLLECTIVE.findall(text)
        )

    return found


@pytest.fixture(scope="session")
def printed_by(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[Mapping[str, str]], dict[str, str]]]:
    """What programs print, by name: each runs in a fork of one process that has imported JAX, no more."""
    words = [sys.executable, "-P", str(Path(__file__).with_name("program_runner.py"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:

        def printed(programs: Mapping[str, str]) -> dict[str, str]:
            assert runner.stdin
            assert runner.stdout
            said = {}
            for name, code in programs.items():
                path = tmp_path_factory.mktemp("program") / "program.py"
                path.write_text(code, encoding="utf-8")
                print(path, file=runner.stdin, flush=True)
                if not select.select([runner.stdout], [], [], 120)[0]:
                    runner.kill()
                assert runner.stdout.readline() == "0\n", (path.parent / "err").read_text(encoding="utf-8")
                said[name] = (path.parent / "out").read_text(encoding="utf-8")
            return said

        yield printed


@pytest.fixture(scope="session")
def profiled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of jax.profiler with two steps, 7 and 8, on eight simulated devices, and the program's text,
    step.txt (profiles/profiled_program.py)."""
    from shardviz.targets import installed_versions, libtpu_mismatch

    if mismatch := libtpu_mismatch(installed_versions()):
        pytest.skip(mismatch)
    folder = tmp_path_factory.mktemp("profiled")
    program = Path(__file__).parent / "profiles" / "profiled_program.py"
    command = [sys.executable, str(program), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def matmul_specs() -> list[str]:
    """All 1,452 specs for a matmul on two axes: 11 for each operand, 11 or the compiler's choice after."""
    results = ("", *(f"->{spec}" for spec in MATRIX_SPECS))
    return [f"{a},{w}{result}" for a, w, result in product(MATRIX_SPECS, MATRIX_SPECS, results)]


@pytest.fixture
def server_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """`shardviz serve` listens at any free port, and is interrupted as soon as it could serve."""
    pytest.importorskip("textual_serve", reason="the extra serve is not installed")
    from shardviz.serve import addresses
    from shardviz.serve.server import Server

    async def interrupted(_: Server, listening: socket.socket) -> int:
        listening.close()
        return signal.SIGINT

    listen = addresses.listen
    monkeypatch.setattr(addresses, "listen", lambda host, _: listen(host, 0))
    monkeypatch.setattr(Server, "serve", interrupted)
