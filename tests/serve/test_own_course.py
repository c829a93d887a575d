"""A teacher's own lessons in browsers: from a file or a folder, in processes that may open no files."""

from __future__ import annotations

import asyncio
import sys

import pytest

from shardviz.lessons import course as lessons
from shardviz.lessons.lesson_file import LessonError
from tests.lessons.conftest import TEXT
from tests.serve.conftest import serving, visit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shardviz serve needs Linux or macOS")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "02-rows.toml").write_text(TEXT)
    (tmp_path / "10-more-rows.toml").write_text(TEXT.replace('"Rows"', '"More rows"'))
    (tmp_path / "bad.toml").write_text("title = 3")
    return tmp_path


@pytest.fixture(autouse=True)
def course_that_ships():
    yield
    if lessons.taught:
        lessons.teach("")


def test_a_folder_is_a_course(folder):
    lessons.teach(str(folder))
    assert [(each.number, each.name) for each in lessons.course()] == [(1, "rows"), (2, "more-rows")]
    assert [fault.name for fault in lessons.faults()] == ["bad.toml"]
    assert lessons.find("more-rows", may_read_files=False) is lessons.following(lessons.find("1"))
    lessons.teach(str(folder / "10-more-rows.toml"))
    assert [each.title for each in lessons.course()] == ["More rows"]
    with pytest.raises(LessonError, match="title"):
        lessons.teach(str(folder / "bad.toml"))
    (folder / "empty").mkdir()
    with pytest.raises(LessonError, match="has no lesson"):
        lessons.teach(str(folder / "empty"))


def test_a_visitor_takes_the_teachers_lessons(folder):
    with serving("--lesson", str(folder)) as (_, url):

        async def script():
            async with visit(url) as visitor:
                await visitor.until("1  Rows")
                await visitor.press("n")
                await visitor.until("Which part of A does")
                await visitor.press("L")
                await visitor.until("2  More rows")
                assert "Mesh and axes" not in visitor.text

        asyncio.run(script())
