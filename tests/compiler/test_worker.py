"""The worker: order, memory, cancelling, time limits, and children that die."""

from __future__ import annotations

import os
import re
import signal
import threading
import time

import pytest

from shardviz.compiler import Cancelled, Worker
from shardviz.errors import CompilerError
from shardviz.targets import OLDEST_JAX, TARGETS, pip

pytestmark = pytest.mark.usefixtures("own_compilers")
SHARDY, CPU = TARGETS["shardy"], TARGETS["cpu"]
SMALL = "b=8,d=64,f=64"


def gone(pid):
    """Whether no process of that id is left, not even a dead one that nobody has waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_repeated_question_is_answered_from_memory(worker, matmul):
    problem = matmul("XY,Y_->X_")
    first = worker.ask(problem, SHARDY)
    again = worker.submit(problem, SHARDY)
    assert again.done()
    assert again.result() is first


def test_stages_are_told_in_order(worker, matmul):
    worker.ask(matmul("X_,_Y"), SHARDY)
    stages: list[str] = []
    pending = worker.submit(matmul("X_,_Y", sizes="b=16,d=64,f=64"), CPU, stages.append)
    pending.result()
    assert stages == ["lowering", "compiling"]
    assert pending.stage == "compiling"


def test_two_children_never_for_the_same_devices(worker, matmul):
    worker.ask(matmul("X_,_X"), SHARDY)
    before = worker.pids()
    for specs in ("X_,_Y", "_X,X_", "XY,Y_"):
        worker.ask(matmul(specs), SHARDY)
        worker.ask(matmul(specs, sizes=SMALL), CPU)
    assert worker.pids() == before


def test_questions_from_many_threads_all_get_their_own_answer(worker, matmul):
    sizes = range(8, 72, 8)
    answers = {}

    def ask(size):
        answers[size] = worker.ask(matmul("XY,Y_->X_", sizes=f"b={size},d=64,f=64"), SHARDY)

    threads = [threading.Thread(target=ask, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {size: answer.collectives[0].bytes for size, answer in answers.items()} == {
        size: size // 2 * 64 * 2 for size in sizes
    }


def test_a_killed_child_is_an_error_and_the_next_question_starts_anew(matmul):
    with Worker() as worker:
        worker.ask(matmul("X_,_Y"), SHARDY)
        (pid,) = worker.pids()

        def kill(stage):
            if stage == "compiling":
                os.kill(pid, signal.SIGKILL)

        pending = worker.submit(matmul("XY,Y_->X_"), CPU, kill)
        with pytest.raises(CompilerError) as caught:
            pending.result(60)
        assert caught.value.message == "the cpu compiler was killed by SIGKILL while compiling"
        assert caught.value.exit_code == 3
        assert caught.value.hint
        assert gone(pid)
        assert worker.ask(matmul("XY,Y_->X_"), CPU).status == "ok"
        # One that dies while it is idle, or is killed, is replaced without a word.
        for rows, kill_it in ((8, lambda pid: os.kill(pid, signal.SIGKILL)), (16, lambda _: worker.kill())):
            before, pid = pid, *worker.pids()
            assert pid != before
            kill_it(pid)
            assert worker.ask(matmul("_Y,Y_", sizes=f"b={rows},d=64,f=64"), CPU).status == "ok"
            assert gone(pid)


def test_a_worker_anywhere_goes_on_after_an_error_in_a_listener(matmul, monkeypatch, tmp_path):
    """Files of the user's folder are not imported; and a time limit may be endless."""
    (tmp_path / "random.py").write_text("raise RuntimeError('the wrong random')")
    monkeypatch.chdir(tmp_path)

    def fail(_):
        raise ZeroDivisionError

    with Worker(time_limit=float("inf")) as worker:
        with pytest.raises(CompilerError, match="gave no answer: ZeroDivisionError"):
            worker.submit(matmul("X_,_Y"), SHARDY, fail).result(60)
        assert worker.ask(matmul("X_,_Y"), SHARDY).status == "ok"


def test_an_interrupt_in_the_terminal_does_not_reach_the_child(worker, matmul):
    worker.ask(matmul("X_,_Y"), SHARDY)
    pids = worker.pids()
    for pid in pids:
        assert os.getsid(pid) == pid != os.getsid(0)
        os.kill(pid, signal.SIGINT)
    assert worker.ask(matmul("Y_,_X"), SHARDY).status == "ok"
    assert worker.pids() == pids


def test_a_question_over_the_time_limit_is_stopped(matmul):
    with Worker(time_limit=0.05) as worker:
        # Loading JAX alone takes longer.
        with pytest.raises(CompilerError) as caught:
            worker.ask(matmul("X_,_Y"), CPU)
        assert caught.value.message == (
            "the cpu compiler took longer than 0.05 s while importing jax and was stopped"
        )
        assert "a larger --timeout" in caught.value.hint
        assert "--target shardy" in caught.value.hint
        assert worker.pids() == ()
        with pytest.raises(CompilerError) as caught:
            worker.ask(matmul("X_,_Y"), SHARDY)
        assert caught.value.hint == "give it longer with a larger --timeout"


def test_waiting_has_a_timeout_of_its_own(worker, matmul):
    go_on = threading.Event()
    pending = worker.submit(matmul("X_,_Y", sizes="b=8,d=32,f=32"), SHARDY, lambda _: go_on.wait(60))
    with pytest.raises(TimeoutError):
        pending.result(0.01)
    go_on.set()
    assert pending.result().status == "ok"


def test_a_cancelled_question_in_the_queue_is_never_asked(worker, matmul):
    go_on = threading.Event()
    stages: list[str] = []
    first = worker.submit(matmul("X_,_Y", sizes="b=8,d=16,f=16"), SHARDY, lambda _: go_on.wait(60))
    second = worker.submit(matmul("Y_,_X", sizes="b=8,d=16,f=16"), SHARDY, stages.append)
    third = worker.submit(matmul("_Y,Y_", sizes="b=8,d=16,f=16"), SHARDY)
    second.cancel()
    go_on.set()
    with pytest.raises(Cancelled, match="the request to the shardy compiler was cancelled"):
        second.result()
    assert first.result().status == third.result().status == "ok"
    assert stages == []


def test_a_cancelled_compile_may_end_by_itself_and_is_remembered(worker, matmul, monkeypatch):
    monkeypatch.setattr("shardviz.compiler.worker_process.CANCEL_GRACE_S", 60.0)  # on a busy machine, too
    problem = matmul("XY,Y_->X_", sizes="b=8,d=128,f=128")
    began = threading.Event()
    pending = worker.submit(problem, CPU, lambda _: began.set())
    assert began.wait(60)
    before = worker.pids()
    pending.cancel()
    with pytest.raises(Cancelled):
        pending.result()
    assert worker.ask(problem, CPU).status == "ok"
    assert worker.pids() == before


def test_a_cancelled_compile_that_goes_on_is_killed(matmul):
    with Worker() as worker:
        worker.ask(matmul("X_,_Y"), SHARDY)
        (pid,) = worker.pids()
        stopped = threading.Event()

        def stop(stage):
            if stage == "compiling":
                os.kill(pid, signal.SIGSTOP)  # it will not end by itself
                stopped.set()

        pending = worker.submit(matmul("XY,Y_->X_"), CPU, stop)
        stopped.wait()
        pending.cancel()
        assert worker.ask(matmul("XY,Y_->X_"), SHARDY).status == "ok"
        assert gone(pid)


def test_closing_kills_the_child_in_the_middle_and_ends_what_waits(matmul):
    worker = Worker()
    began = threading.Event()
    running = worker.submit(matmul("X_,_Y"), CPU, lambda _: began.set())
    waiting = worker.submit(matmul("Y_,_X"), CPU)
    began.wait()
    (pid,) = worker.pids()
    worker.close()
    for pending in (running, waiting):
        with pytest.raises(Cancelled, match="the worker was closed"):
            pending.result(0)
    assert gone(pid)
    with pytest.raises(Cancelled):
        worker.ask(matmul("X_,_Y"), CPU)
    worker.close()


def test_closing_does_not_wait_for_a_thread_that_is_stuck(monkeypatch):
    """As one is that imports what an interrupted import of the main thread has left locked."""
    stuck = threading.Event()
    monkeypatch.setattr("shardviz.compiler.worker_process.import_module", lambda _: stuck.wait())
    monkeypatch.setattr("shardviz.compiler.worker_process.CLOSE_GRACE_S", 0.1)
    worker = Worker()
    worker.start()
    while not worker.pids():
        stuck.wait(0.01)
    (pid,) = worker.pids()
    closing = threading.Thread(target=worker.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    stuck.set()
    while not gone(pid):
        stuck.wait(0.01)


def test_what_the_child_prints_is_kept_and_never_shown(matmul, monkeypatch, capfd):
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")
    with Worker() as worker:
        with pytest.raises(CompilerError) as caught:
            worker.ask(matmul("X_,_Y"), CPU)
        assert re.fullmatch(
            r"the cpu compiler (was killed by SIGABRT|ended with status 1) while [a-z ]+: .*no_such_flag.*",
            caught.value.message,
        )
        assert "xla_no_such_flag" in caught.value.log
        assert "XLA_FLAGS" in caught.value.hint
    assert capfd.readouterr() == ("", "")


def test_settings_of_jax_do_not_change_the_answers(matmul, monkeypatch):
    for name, value in (
        ("JAX_PLATFORMS", "no_such_platform"),
        ("JAX_DISABLE_JIT", "1"),
        ("JAX_ENABLE_X64", "1"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=3"),
    ):
        monkeypatch.setenv(name, value)
    with Worker() as worker:
        answer = worker.ask(matmul("XY,Y_->X_"), CPU)
    assert (answer.status, answer.error) == ("ok", "")
    assert [each.bytes for each in answer.collectives] == [131_072]


def test_a_jax_that_cannot_be_loaded_is_named(matmul, monkeypatch, tmp_path):
    (tmp_path / "jax.py").write_text("raise ImportError('half an installation')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Worker() as worker:
        for _ in range(2):
            with pytest.raises(CompilerError) as caught:
                worker.ask(matmul("X_,_Y"), SHARDY)
            assert caught.value.message == "jax cannot be used here: ImportError: half an installation"
            assert "import jax" in caught.value.hint


def test_a_jax_that_fails_before_anybody_asks_is_named_too(matmul, monkeypatch, tmp_path):
    (tmp_path / "jax.py").write_text("raise ImportError('no jax here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Worker() as worker:
        worker.start()
        end = time.monotonic() + 20
        while not worker.pids():
            assert time.monotonic() < end
            time.sleep(0.01)
        os.waitid(os.P_PID, worker.pids()[0], os.WEXITED | os.WNOWAIT)
        with pytest.raises(CompilerError) as caught:
            worker.ask(matmul("X_,_Y"), SHARDY)
        assert caught.value.message == "jax cannot be used here: ImportError: no jax here"


def test_a_platform_that_is_not_there_is_named(matmul, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "no_such_platform")
    with Worker() as worker:
        with pytest.raises(CompilerError, match=r"jax cannot be used here: .*no_such_platform"):
            worker.job().result()
        answer = worker.ask(matmul("X_,_Y"), TARGETS["real"])
        assert answer.status == "error"
        assert answer.error.startswith("JAX finds no devices here: ")
        assert "no_such_platform" in answer.error
        assert answer.hint == (
            "JAX_PLATFORMS is no_such_platform: unset it, or ask --target cpu for simulated devices"
        )


def test_an_older_jax_is_named_with_the_one_that_is_needed(tmp_path, monkeypatch, matmul):
    """A module of that name stands before the real one, and would fail at anything but its version."""
    (tmp_path / "jax.py").write_text('__version__ = "0.7.2"')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Worker() as worker, pytest.raises(CompilerError) as raised:
        worker.ask(matmul("X_,_Y"), TARGETS["shardy"])
    assert (
        raised.value.message
        == f"jax cannot be used here: it is jax 0.7.2, and shardviz needs {OLDEST_JAX} or newer"
    )
    assert raised.value.hint == pip("install", "-U", f"jax>={OLDEST_JAX}")
