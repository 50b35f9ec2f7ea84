"""The driver of an experiment in a job of Ray: gets nodes by a placement group, starts an agent of muster on each by an
actor, and the experiment's supervisor beside itself, which it serves over a Unix socket (docs/ray_engine.md).

    ray_driver.py SCRIPT JOB [AFTER]

SCRIPT has the line "#RAY {...}" that says what is asked for, JOB is the id of Ray's job, AFTER names jobs, "A:B", for
whose ends this one waits, in the place of the script's. The exit code is that of the supervisor; 2: it can't have the
nodes.
"""

import socket
import sys

sys.dont_write_bytecode = True  # it runs in the experiment's folder

from driver_server import JobDriver, asked_of  # noqa: E402
from ray_hosts import Cluster, Starts, await_ends  # noqa: E402


class Driver(JobDriver):
    system = "ray"

    def __init__(self, asked, job, after):
        super().__init__(asked, job, after, Cluster(asked, self.waits))

    def await_others(self):
        await_ends(self.after, self.free_file(), self.waits)

    def starts_of(self, hosts):
        return Starts(self.cluster, hosts)


def has_ray():
    """Says on stderr what to do where Ray can't be imported: without what it needs itself, for instance."""
    try:
        import ray  # noqa: F401
    except ImportError as error:
        print(
            f"muster: {socket.gethostname()} has no {sys.executable} with Ray, where the job's driver runs ({error}): say "
            "which python has it there (ray: {python: FILE})",
            file=sys.stderr,
        )
        return False
    return True


def main(words):
    if not has_ray():
        return 2
    with open(words[0], encoding="utf-8") as file:
        asked = asked_of(file.read(), "RAY")
    after = words[2].split(":") if len(words) > 2 else None
    return Driver(asked, words[1], after).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
