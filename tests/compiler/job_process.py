"""A process of a job that runs an all-reduce again and again; it prints when the first one is done.

Its words: HOST:PORT, processes, process, time limit in seconds.
"""

from __future__ import annotations

import sys

import numpy as np

from shardviz.cli.output import print_error
from shardviz.cli.target_session import end_with_job, join_job
from shardviz.collectives.operations import operation_for
from shardviz.compiler import Worker
from shardviz.devices.job import JobAddress
from shardviz.errors import ShardvizError
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import TARGETS


def main(coordinator: str, processes: str, process: str, limit_s: str, runs: str) -> int:
    address = JobAddress(coordinator, int(processes), int(process))
    try:
        with Worker(float(limit_s), address, end_with_job) as worker:
            print("pids", *worker_pids(worker), file=sys.stderr, flush=True)
            job = join_job(worker)
            mesh = parse_mesh(f"i={len(job.process_of)}")
            psum = operation_for("psum", ("i",), {}, mesh.size)
            shards = np.arange(mesh.size * 4, dtype=np.int32).reshape(mesh.size, 4)
            for number in range(int(runs)):
                ran = worker.run(psum, mesh, shards, TARGETS["real"]).result()
                assert ran.shards is not None
                assert (ran.shards == shards.sum(axis=0)).all()
                if number == 0:
                    print("ran", file=sys.stderr, flush=True)
    except ShardvizError as error:
        print_error(error.message, error.hint)
        return error.exit_code
    return 0


def worker_pids(worker: Worker) -> tuple[int, ...]:
    worker.start(TARGETS["real"])
    while not worker.pids():
        pass
    return worker.pids()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
