"""The picture of a job: every device with its holder, and the groups that cross hosts."""

from __future__ import annotations

import pytest

from shardviz.devices.job import Job
from shardviz.notation.mesh import parse_mesh
from shardviz.render.measurements import job_lines
from shardviz.render.palette import palette_for

HOSTS = ("node-a", "node-a", "node-b", "node-b")
JOB = Job(0, 4, HOSTS, (0, 0, 1, 1, 2, 2, 3, 3))


def drawn(job, mesh, *axes, width=100):
    lines = job_lines(job, parse_mesh(mesh), axes, width, palette_for(None))
    assert all(line.cell_len <= width for line in lines)
    return "\n".join(line.plain.rstrip() for line in lines)


def test_a_lone_process_has_nothing_to_say():
    assert drawn(Job(0, 1, ("a",), (0, 0)), "X=2", ("X",)) == ""


@pytest.mark.parametrize("mesh", ["X=2", "X=4,Y=4"])
def test_a_mesh_that_does_not_take_all_devices_has_no_picture(mesh):
    assert drawn(JOB, mesh, ("X",)) == ""


def test_hosts_and_the_groups_that_cross_them():
    assert drawn(JOB, "X=2,Y=4", ("Y",), ("X", "Y")) == (
        """\
job  4 processes on 2 hosts, 8 devices
     Y0           Y1           Y2           Y3
 X0  0 node-a p0  1 node-a p0  2 node-a p1  3 node-a p1
 X1  4 node-b p2  5 node-b p2  6 node-b p3  7 node-b p3
 over Y     2 groups cross processes of one host
 over X, Y  ≠ 1 group crosses hosts: {0, 1, 2, 3, 4, 5, 6, 7} node-a, node-b
"""
    )


def test_one_host_is_named_once():
    job = Job(0, 2, ("pc", "pc"), (0, 0, 1, 1))
    assert drawn(job, "X=2,Y=2", ("X",), ("Y",)) == (
        """\
job  2 processes on pc, 4 devices
     Y0    Y1
 X0  0 p0  1 p0
 X1  2 p1  3 p1
 over X  2 groups cross processes of one host
 over Y  2 groups, each within one process
"""
    )


def test_a_narrow_page_lists_the_processes():
    assert " p3  node-b  devices 6–7" in drawn(JOB, "X=2,Y=4", ("X",), width=40)


@pytest.mark.parametrize("width", [40, 100])
def test_large_jobs_stay_short(width):
    job = Job(0, 512, tuple(f"host-{number}" for number in range(512)), tuple(n // 8 for n in range(4096)))
    text = drawn(job, "X=64,Y=64", ("X",), ("Y",), width=width)
    assert len(text.splitlines()) < 24
    assert "504 more processes" in text
    assert "64 groups cross hosts" in text
