"""The driver of an experiment in a job of Spark: begins an application, has a barrier stage's tasks start an agent of muster each,
and the experiment's supervisor beside itself, which it serves over a Unix socket (docs/spark_engine.md).

    spark_driver.py SCRIPT [AFTER]

SCRIPT has the line "#SPARK {...}" that says what is asked for, AFTER names jobs, "A:B", for whose ends this one waits, in
the place of the script's. The job's id follows from this process. The exit code is that of the supervisor; 2: it can't have
the hosts.
"""

import os
import resource
import sys
import time

sys.dont_write_bytecode = True  # it runs in the experiment's folder

from driver_server import JobDriver, asked_of  # noqa: E402
from spark_client import job_of, lives  # noqa: E402
from spark_cluster import Cluster  # noqa: E402
from spark_links import Starts  # noqa: E402

PATIENCE_OF_JOBS = 0.5  # seconds between two looks at a job whose end is waited for


def await_ends(jobs, free_file, waits):
    """Waits until the drivers of these jobs have ended, or this file is there."""
    for job in jobs:
        while lives(job) and not os.path.exists(free_file):
            waits(f"waits for the end of job {job}")
            time.sleep(PATIENCE_OF_JOBS)


def raise_descriptor_limit():
    """Lets this process have as many connections as it may: there is one for each task of Spark. Often the limit of a shell is
    1024, and that of its user much higher."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):  # it stays as it is
        pass


class Driver(JobDriver):
    system = "spark"

    def __init__(self, asked, job, after):
        super().__init__(asked, job, after, Cluster(asked, self.say, self.waits))

    def await_others(self):
        await_ends(self.after, self.free_file(), self.waits)

    def starts_of(self, hosts):
        return Starts(self.cluster.links, hosts, self.cluster.waits_now)


def main(words):
    raise_descriptor_limit()
    with open(words[0], encoding="utf-8") as file:
        asked = asked_of(file.read(), "SPARK")
    after = words[1].split(":") if len(words) > 1 else None
    return Driver(asked, job_of(os.getpid()), after).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
