"""How a worker of `bench peers` measures itself: as in meter.h, which describes the files in a run's folder."""

import argparse
import json
import os
import pathlib
import time

WARM_UP_STEPS = 20
MEETING_SECONDS = 120
STEPS_BETWEEN_MEETINGS = 10  # when losses are compared


def arguments(description, roles=()):
    """Parses the command line that all programs of the comparison share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True, help="mlp100, mlp2048, conv, embedding")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="what `peers_muster --write` has written")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="of this run alone")
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--steps", type=int, default=0, help="so many, with the loss of each")
    parser.add_argument("--threads", type=int, default=1, help="to compute with; 0: as many as the framework takes")
    parser.add_argument("--addresses", default="", help="host:port of each process of the cluster, a ps first")
    parser.add_argument("--synchronous", action="store_true")
    if roles:
        parser.add_argument("--role", choices=roles, required=True)
    return parser.parse_args()


def await_file(path):
    start = time.monotonic()
    while not path.exists():
        if time.monotonic() - start > MEETING_SECONDS:
            raise SystemExit(f"another worker didn't come: no {path}")
        time.sleep(0.001)


def write_whole(path, text):
    """Writes the file atomically: other processes wait for the name."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.rename(part, path)


class Meter:
    def __init__(self, args, in_step=False):
        """in_step: no worker can take a step without the others, so all take the same number, agreed on after the
        warm-up."""
        self.args, self.in_step = args, in_step

    def meet(self, name):
        write_whole(self.args.folder / f"{name}.{self.args.task}", "")
        for worker in range(self.args.workers):
            await_file(self.args.folder / f"{name}.{worker}")

    def agree_on_steps(self, seconds_a_step):
        """Worker 0 decides how many steps fill the time."""
        path = self.args.folder / "steps"
        if self.args.task == 0:
            write_whole(path, str(max(5, int(self.args.seconds / seconds_a_step))))
        await_file(path)
        return int(path.read_text())

    def leave(self, result):
        write_whole(self.args.folder / f"result.{self.args.task}.json", json.dumps(result) + "\n")

    def run(self, step):
        """step(want_loss) takes one step on this worker's next minibatch and returns the loss only if it is wanted."""
        self.meet("started")
        if self.args.steps:
            self.leave({"losses": self.losses(step)})
        else:
            self.leave(self.timed(step))
        self.meet("done")

    def losses(self, step):
        found = []
        for i in range(self.args.steps):
            if i % STEPS_BETWEEN_MEETINGS == 0:
                self.meet(f"step{i}")
            found.append(float(step(True)))
        return found

    def timed(self, step):
        for _ in range(WARM_UP_STEPS // 2):
            step(False)
        start = time.perf_counter()
        for _ in range(WARM_UP_STEPS // 2):
            step(False)
        seconds_a_step = (time.perf_counter() - start) / (WARM_UP_STEPS // 2)
        self.meet("warm")
        planned = self.agree_on_steps(seconds_a_step) if self.in_step else None
        start = time.perf_counter()
        steps = 0
        while time.perf_counter() - start < self.args.seconds if planned is None else steps < planned:
            step(False)
            steps += 1
        return {"steps": steps, "seconds": time.perf_counter() - start}
