"""What visitors can do, that nothing of them stays, and what the command line says."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.errors import TargetError
from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.serve.addresses import listen
from shardviz.serve.server import COOKIE, ENDED
from shardviz.serve.session import FAILED, Notes, Session
from shardviz.serve.visitor import VisitorsWorker, say_end
from shardviz.targets import parse_targets, pip
from tests.serve.conftest import PATIENCE_S, descendants, serving, until, until_async, visit, visitors

PICTURE = "X=2  Y=4        8 devices"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")


def test_keys_change_the_picture_but_not_its_size(url):
    async def script():
        async with visit(url) as visitor:
            await visitor.until("A[b_X, d_Y]")
            await visitor.press(*["\x1b[B"] * 4, "\x7f")
            await visitor.until("A[b, d_Y]")
            await visitor.resize(10**9, 30, shown=(400, 30))
            # What a terminal says of its own size, typed.
            await visitor.press("\x1b[48;99999;99999;1;1t", "x")
            await visitor.until("type to find")
            # What no terminal sends, and two keys at once where the first leaves the dialog.
            await visitor.press("\x1b[97:65;1u\x1b[9999999999u", "\r\r")
            await visitor.until("? help")
            await visitor.press("?")
            await visitor.until("Help:")

    asyncio.run(script())


def test_more_keys_than_a_person_types_end_the_session_however_busy_it_is(server, url):
    size = 2**16

    async def script():
        async with visit(url) as visitor:
            await visitor.until(PICTURE)
            sending = asyncio.create_task(visitor.press(*["x" * size] * (2**22 // size)))
            assert await visitor.ended() == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
            await asyncio.gather(sending, return_exceptions=True)

    asyncio.run(script())
    until(lambda: not visitors(server[0].pid))


def test_a_visitor_has_no_files(url):
    async def script():
        async with visit(url) as visitor:
            await visitor.until(PICTURE)
            await visitor.press("e")
            await visitor.until("cannot write files")
            await visitor.press("\x10")
            await visitor.until("type to find")
            for said in ("Screenshot", "Maximize", "Keys and help panel"):
                assert said not in visitor.text
            await visitor.press("last session", "\r")
            await visitor.until("is not kept")

    asyncio.run(script())


def test_a_visitor_has_only_the_compilers_that_need_no_hardware():
    with VisitorsWorker() as worker, pytest.raises(TargetError, match="cannot ask v5e"):
        worker.submit(None, *parse_targets("v5e:2x4"))


class Program:
    """Starts a program in place of a visitor's process, with a socket as its input and output."""

    def __init__(self, program):
        self.program = program

    async def fork(self, _words, _size, folder):
        ours, theirs = socket.socketpair()
        with theirs:
            words = ["sh", "-c", f"echo __GANGLION__; {self.program}"]
            self.process = subprocess.Popen(
                words, stdin=theirs, stdout=theirs, cwd=folder, start_new_session=True
            )
        return self.process.pid, *await asyncio.open_connection(sock=ours)


def test_an_application_that_fails_says_why(capfdbinary):
    say_end(ValueError("two\nlines"))
    packet = capfdbinary.readouterr().out.decode()

    async def script():
        ended = asyncio.get_running_loop().create_future()
        program = Program(f"printf 'M\\000\\000\\000\\{len(packet) - 5:03o}%s' '{packet[5:]}'")
        session = Session(
            "", "", "", program, Notes(), lambda *_: None, lambda _, code: ended.set_result(code)
        )
        session.start(80, 24)
        assert await asyncio.wait_for(ended, PATIENCE_S) == FAILED
        await session.stop()
        program.process.wait(PATIENCE_S)

    asyncio.run(script())
    said = capfdbinary.readouterr().err
    assert said == b"shardviz: note: a visitor's session failed: ValueError: two lines\n"


def test_a_process_that_shows_more_than_anybody_takes_is_not_killed_for_it():
    async def script():
        # A picture, and more than a socket holds.
        program = Program("printf 'D\\000\\000\\000\\001x'; head -c 4000000 /dev/zero")
        session = Session("", "", "", program, Notes(), lambda *_: None, lambda *_: None)
        session.start(80, 24)
        await session.stop()
        assert program.process.wait(PATIENCE_S) == 0

    asyncio.run(script())


def test_a_process_that_dies_is_said_and_an_interrupt_ends_the_others():
    with serving() as (server, url):

        async def script():
            async with visit(url) as first, visit(url) as second:
                await first.until(PICTURE)
                await second.until(PICTURE)
                os.kill(min(visitors(server.pid)), signal.SIGKILL)
                for visitor in (first, second):
                    visitor.end = asyncio.create_task(visitor.ended())
                done, _ = await asyncio.wait([first.end, second.end], return_when=asyncio.FIRST_COMPLETED)
                assert done.pop().result() == FAILED
                server.send_signal(signal.SIGINT)
                assert {await first.end, await second.end} == {FAILED, ENDED}

        asyncio.run(script())
        assert server.wait(PATIENCE_S) == 0
        assert not descendants(server.pid)
        assert server.stderr.read().splitlines()[1:] == [
            "shardviz: note: a visitor's session failed: its process died"
        ]


def test_all_begin_with_what_the_teacher_says_and_nothing_stays_of_a_server_that_is_killed():
    shared = to_string(Shared(ProblemForm(mesh="Z=4", specs=("__", "__", "__")), "compiler"))
    with serving("--from", f" `{shared}`\n") as (server, url):

        async def script():
            async with visit(url) as visitor:
                await visitor.until("Z=4")
                # The visitor's process, the compilers' that the screen has asked for, and the one that forks.
                await until_async(lambda: len(descendants(server.pid)) == 3)
                started.update(descendants(server.pid))
                folders.update(Path(f"/proc/{pid}/cwd").resolve() for pid in started)
                server.kill()
                await visitor.ended()

        started: set[int] = set()
        folders: set[Path] = set()
        asyncio.run(script())
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
        folders.remove(Path.cwd())  # of the process that forks
        assert len(folders) == 1
        assert not any(folder.exists() for folder in folders)


def test_a_class_follows_the_teacher():
    with serving("--lesson", "4", "--follow") as (server, url):
        secret, counts = (server.stderr.readline().rpartition(" ")[2].strip() for _ in range(2))
        assert secret.startswith(url)
        assert counts == f"{secret}class"
        key = secret.removeprefix(url).strip("/")
        assert len(key) > 20
        cookie = {"Cookie": f"{COOKIE}={key}"}

        async def counted(text):
            async with aiohttp.ClientSession(headers=cookie) as http, asyncio.timeout(PATIENCE_S):
                page = ""
                while text not in page:
                    page = await (await http.get(f"{url}class")).text()
                    await asyncio.sleep(0.02)

        async def script():
            async with visit(url) as pupil, visit(f"{url}lead/", Origin=url.rstrip("/"), **cookie) as teacher:
                await pupil.until("See")
                await teacher.until("n next")
                before = len(descendants(server.pid))
                async with visit(url) as late:
                    await late.until("See")
                    await counted("2 pupils, 2 with you")
                assert len(descendants(server.pid)) == before
                await teacher.press("n")
                await pupil.until("Predict 1 of 3")
                asked = (await pupil.until_told(size=[100, 30]))["asked"]
                await pupil.say("predict", asked["choices"][0])
                await counted("1 of 1 have predicted")
                await pupil.say("take")
                await pupil.until("B back")
                assert len(descendants(server.pid)) == before + 1
                await pupil.press("B")
                await counted("1 pupil, 0 with you")
                await pupil.press("T")
                await counted("1 pupil, 1 with you")
                await until_async(lambda: len(descendants(server.pid)) == before)
                await teacher.press(" ")
                await pupil.until("Answer 1 of 3")
                # More than is kept of a picture: the process draws it again.
                for key in "nBnBnBnBnBnBnBnBnBnBnBnB":
                    await teacher.press(key)
                    await pupil.until({"n": "Predict 2 of 3", "B": "Answer 1 of 3"}[key])
                async with visit(url) as late:
                    assert await late.settled() == await pupil.settled()
                    assert "Answer 1 of 3" in late.text
            await counted("0 pupils, 0 with you")

        asyncio.run(script())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "no.such.host.invalid"], "there is no host 'no.such.host.invalid'"),
        (["--host", "192.0.2.1"], "'192.0.2.1' cannot be served from"),
        (["--lesson", "99"], "there is no lesson 99"),
        (["--lesson", "1", "--from", "x"], "--lesson and --from cannot be combined"),
        (["--port", "65536"], "65536"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(words, said, capsys):
    assert run(["serve", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.splitlines()[1].startswith("hint: ")


def test_a_port_in_use_is_said_with_the_next_free_one(capsys):
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--port", str(port)]) == 2
    said, hint = capsys.readouterr().err.splitlines()
    assert said == f"shardviz: error: port {port} of 127.0.0.1 is in use"
    free = int(hint.rpartition(" ")[2])
    assert hint == f"hint: the next free one is {free}: --port {free}"
    listen("127.0.0.1", free).close()


def test_without_its_extra_it_says_what_installs_it(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert run(["serve"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "shardviz: error: shardviz serve needs textual-serve, which is not installed",
        f"hint: {pip('install', 'textual-serve')}",
    ]


IMPORTS = (
    "import os, socket, sqlite3, subprocess, sys, tempfile; from pathlib import Path; "
    "from shardviz.compiler.child_process import COMPILERS_CHILD, ChildProcess; "
    "from shardviz.serve.visitor import refuse_files; "
)
GUARDED = f"{IMPORTS}refuse_files(); "

REFUSED = [
    "open('/etc/passwd')",
    "open('{home}/secret')",
    "os.open('{home}/secret', os.O_RDONLY)",
    "Path('../home/secret').read_text()",
    "open('link/secret')",
    "open('{home}/new', 'w')",
    "open('{home}/secret', 'a')",
    "os.mkdir('{home}/new')",
    "os.remove('{home}/secret')",
    "os.rename('{home}/secret', 'mine')",
    "Path('mine').write_text('x'); os.rename('mine', '{home}/new')",
    "os.chmod('{home}/secret', 0o777)",
    "os.truncate('{home}/secret', 0)",
    "os.listdir('{home}')",
    "os.system('true')",
    "os.posix_spawn('/bin/true', ['true'], dict())",
    "os.fork()",
    "os.execv('/bin/true', ['true'])",
    "subprocess.run(['/bin/true'])",
    "subprocess.run([sys.executable, '-c', ''])",
    "ChildProcess('json.tool', os.environ)",
    "socket.create_connection(('127.0.0.1', 9))",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "sqlite3.connect('{home}/new')",
    "open(f'/proc/{{os.getppid()}}/environ')",
    "os.kill(os.getppid(), 0)",
    "os.killpg(os.getpgid(os.getppid()), 0)",
    "os.killpg(0, 0)",
    "os.setxattr('{home}/secret', 'user.said', b'x')",
]
ALLOWED = [
    "import json.tool, decimal",
    "open(os.devnull, 'w').close()",
    "Path('own').write_text('x'); Path('own').read_text(); Path('own').unlink()",
    "import shutil; shutil.rmtree(tempfile.mkdtemp(dir='.'))",
    "child = ChildProcess(COMPILERS_CHILD, os.environ, 'simulated'); child.kill(); child.wait(9)",
]


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text("s")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path / "home")
    return tmp_path


def test_what_is_not_the_visitors_is_refused(folders):
    tries = "".join(
        f"\ntry: {line.format(home=folders / 'home')}\nexcept PermissionError: pass\nelse: print({number})"
        for number, line in enumerate(REFUSED)
    )
    assert _said(tries, folders) == ""
    assert (folders / "home" / "secret").read_text() == "s"
    assert [path.name for path in (folders / "home").iterdir()] == ["secret"]


def test_machines_models_and_rules_of_files_are_refused_whether_they_are_there_or_not(folders):
    (folders / "home" / "there.toml").write_text('base = "v5e:4x4"')
    tries = "from shardviz.forms.resolve import resolve_first; from shardviz.forms.form import ProblemForm\n"
    paths = [str(folders / "home" / f"{name}.toml") for name in ("there", "gone")]
    # What Python's own library may read says nothing here either.
    paths += ["/proc/self/environ", str(Path(shardviz.__file__).parents[1] / "pyproject.toml"), "mine.toml"]
    for path in paths:
        tries += f"fault = resolve_first(ProblemForm(machine={path!r})).faults[0]\n"
        tries += "print(fault.message.partition(' cannot ')[2])\n"
    (folders / "home" / "config.json").write_text("{}")
    models = [str(folders / "home" / name) for name in ("config.json", "gone.json", "", "gone")]
    tries += "from shardviz.models.sources import read_model\n"
    tries += "from shardviz.models.rule_files import read_rule_file\n"
    tries += "from shardviz.errors import ShardvizError\n"
    files = [("read_model", path) for path in models]
    files += [("read_rule_file", name) for name in ("mine.toml", f"{Path(os.__file__)}:remove")]
    for read, path in files:
        tries += f"try: {read}({path!r})\n"
        tries += "except ShardvizError as error: print(error.message.partition(' cannot ')[2])\n"
    refused = "be read: a visitor's session may not do this\n"
    assert _run(GUARDED + tries, folders) == (len(paths) + len(files)) * refused


def test_what_the_application_needs_is_not(folders):
    assert _said("\n".join(["", *ALLOWED, "print('done')"]), folders) == "done\n"


def test_without_the_guard_all_of_it_is_possible(folders):
    home = folders / "home"
    tries = f"open('{home}/secret'); os.listdir('{home}'); subprocess.run(['/bin/true']); print('done')"
    assert _run(IMPORTS + tries, folders) == "done\n"


def _said(tries, folders):
    return _run(GUARDED + tries, folders)


def _run(program, folders):
    words = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(words, cwd=folders / "own", check=True, capture_output=True, text=True).stdout
