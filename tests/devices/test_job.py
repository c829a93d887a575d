"""A job: its address as users write it, and the groups of a mesh that cross its processes and hosts."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.devices.job import DETECTED, Job, JobAddress, group_span, job_address
from shardviz.errors import QuestionError
from shardviz.notation.mesh import parse_mesh

WHOLE = "a job has an address, a number of processes and the number of this one"
JOB = Job(0, 4, ("a", "a", "b", "b"), (0, 0, 1, 1, 2, 2, 3, 3))


def test_without_an_address_jax_looks_for_the_cluster():
    assert job_address(None, None, None) is DETECTED
    assert DETECTED.words == ("", "", "")
    assert not DETECTED.is_given


def test_an_address_is_read():
    assert job_address("node-a:1234", 4, 3) == JobAddress("node-a:1234", 4, 3)
    assert job_address("[fe80::1]:80", 1, 0).words == ("[fe80::1]:80", "1", "0")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a:1", None, None), f"--processes and --process are missing: {WHOLE}"),
        ((None, 4, 1), f"--coordinator is missing: {WHOLE}"),
        (("a", 2, 0), "--coordinator 'a' is not HOST:PORT"),
        (("a:", 2, 0), "--coordinator 'a:' is not HOST:PORT"),
        ((":1", 2, 0), "--coordinator ':1' is not HOST:PORT"),
        (("a:65536", 2, 0), "--coordinator 'a:65536' is not HOST:PORT"),
        (("a:²", 2, 0), "--coordinator 'a:²' is not HOST:PORT"),
        (("a:1", 2, 2), "--process 2 does not exist: the 2 processes are numbered from 0"),
    ],
)
def test_what_cannot_be_an_address(given, message):
    with pytest.raises(QuestionError) as error:
        job_address(*given)
    assert error.value.message == message
    assert error.value.hint


def test_the_devices_of_a_process():
    assert JOB.devices_of(2) == (4, 5)
    assert JOB.is_first


@pytest.mark.parametrize("mesh", ["X=2,Y=4", "X=4,Y=2", "X=2,Y=2,Z=2"])
@pytest.mark.parametrize("axis", ["X", "Y"])
def test_groups_across_hosts_are_those_that_numpy_finds(mesh, axis):
    mesh = parse_mesh(mesh)
    grid = np.arange(8).reshape(mesh.axis_sizes)
    lines = np.moveaxis(grid, mesh.axis_names.index(axis), -1).reshape(-1, mesh.axis_size(axis))
    span = group_span(JOB, mesh, [axis])
    assert len(span.groups) == len(lines)
    assert span.across_hosts == sum(len({*(line // 4)}) > 1 for line in lines)
    assert span.within_process == sum(len({*(line // 2)}) == 1 for line in lines)
    assert span.across_processes == len(lines) - span.across_hosts - span.within_process


def test_devices_in_another_order_cross_hosts_elsewhere():
    mesh = parse_mesh("X=2,Y=4", "0,4,1,5,2,6,3,7")
    assert group_span(JOB, mesh, ["Y"]).across_hosts == 2
    assert group_span(JOB, mesh, ["Y"]).hosts == (("a", "b"), ("a", "b"))


@pytest.mark.parametrize(
    ("hosts", "process_of", "each"),
    [
        (("a",), (0, 0, 0), 3),
        (("a", "a", "b", "b"), (0, 0, 1, 1, 2, 2, 3, 3), 4),
        (("a", "b", "a", "b"), (0, 0, 1, 1, 2, 2, 3, 3), 0),
        (("a", "a", "b"), (0, 0, 1, 1, 2, 2), 0),
        (("a", "a", "b"), (0, 1, 2, 2), 2),
    ],
)
def test_devices_of_each_host(hosts, process_of, each):
    assert Job(0, len(hosts), hosts, process_of).devices_per_host == each
