"""What a visitor's process is refused, whatever part of the program asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORTS = (
    "import os, socket, sqlite3, subprocess, sys, tempfile; from pathlib import Path; "
    "from shardviz.compiler.worker_process import ChildProcess; "
    "from shardviz.serve.guard import refuse_files; "
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
    "socket.create_connection(('127.0.0.1', 9))",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "sqlite3.connect('{home}/new')",
    "open(f'/proc/{{os.getppid()}}/environ')",
]
ALLOWED = [
    "import json.tool, decimal",
    "open(os.devnull, 'w').close()",
    "Path('own').write_text('x'); Path('own').read_text(); Path('own').unlink()",
    "import shutil; shutil.rmtree(tempfile.mkdtemp(dir='.'))",
    "child = ChildProcess('simulated', os.environ); child.kill(); child.wait(9)",
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
