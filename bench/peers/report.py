"""The report of `bench peers`: medians, how much faster this project is than each peer, and the goals."""

import dataclasses
import statistics

from contestants import ALONE, PUSH_PULL, PUSH_PULL_BYTES, SYNCHRONOUS


@dataclasses.dataclass(frozen=True)
class Goal:
    ours: str
    peer: str
    model: str
    workers: int
    factor: float
    switch: bool = False  # both with the AMD switch; otherwise the peer as shipped


# The table. Factors against plain peers were set on an AMD processor, where the switch alone is nearly two.
GOALS = [
    Goal("direct", "tensorflow_ps", "mlp100", 1, 7),
    Goal("direct", "tensorflow_ps", "mlp100", 2, 11),
    Goal("synchronous", "tensorflow_ps_sync", "mlp100", 2, 12),
    Goal("direct", "tensorflow_ps", "mlp2048", 2, 3),
    Goal("synchronous", "torch_ddp", "mlp100", 2, 7),
    Goal("synchronous", "torch_ddp", "mlp2048", 2, 2.5),
    Goal("direct", "torch_hogwild", "mlp100", 2, 1.8),
    Goal("direct", "torch_hogwild", "mlp2048", 2, 1.8),
    Goal("direct", "torch_hogwild", "mlp100", 2, 1.2, switch=True),
    Goal("direct", "torch_hogwild", "mlp2048", 2, 1.2, switch=True),
    Goal("shm", "tensorflow_ps", PUSH_PULL, 1, 6),
    Goal("tcp", "tensorflow_ps", PUSH_PULL, 1, 2.5),
    Goal("tcp", "ps_lite", PUSH_PULL, 1, 1),
]


@dataclasses.dataclass
class Line:
    """One contestant's measurements on one model with one number of workers."""

    contestant: object
    model: str
    workers: int
    switch: bool = False  # for a peer: with the AMD switch by LD_PRELOAD
    rates: list = dataclasses.field(default_factory=list)
    problem: str = ""

    @property
    def median(self):
        return statistics.median(self.rates) if self.rates else None

    @property
    def name(self):
        return self.contestant.name + ("+switch" if self.switch else "")


def rate_of(results):
    """Returns the minibatches per second of all workers together."""
    return sum(result["steps"] / result["seconds"] for result in results)


def find(lines, name, model, workers, switch=False):
    """Returns the median, or None."""
    return next((line.median for line in lines if line.contestant.name == name and line.switch == switch
                 and (line.model, line.workers) == (model, workers)), None)


def row(line, lines, processor):
    """Returns a JSON line."""
    found = {"bench": "peers", "model": line.model, "contestant": line.contestant.name, "ours": line.contestant.ours,
             "kind": line.contestant.kind, "workers": line.workers, "amd_switch": line.contestant.ours or line.switch,
             "minibatches_per_s": line.median, "rounds": line.rates, "processor": processor}
    local = find(lines, "local", line.model, line.workers)
    if local and line.median:
        found["of_local"] = line.median / local
    if line.model == PUSH_PULL and line.median:
        found["gb_per_s"] = line.median * PUSH_PULL_BYTES / 1e9
    if line.problem:
        found["problem"] = line.problem
    return found


def same_work(ours, peer):
    """Returns whether two contestants may be compared: both wait for all workers in each update, or neither does."""
    return (ours.kind == SYNCHRONOUS) == (peer.kind == SYNCHRONOUS) and ours.kind != ALONE


def ratio(ours, peer):
    return f"{ours / peer:.2f} x" if ours and peer else "-"


def table(lines, processor, switch_matters):
    """Yields the text: for each model and number of workers every contestant, and our ways over each peer."""
    yield f"processor: {processor}; minibatches/s of all workers, medians"
    if not switch_matters:
        yield "the AMD switch changes nothing on this processor: the peers' rates with it are those without it"
    groups = list(dict.fromkeys((line.model, line.workers) for line in lines))
    for model, workers in groups:
        group = [line for line in lines if (line.model, line.workers) == (model, workers)]
        our_ways = [line for line in group if line.contestant.ours and line.contestant.kind != ALONE]
        yield ""
        yield f"{model}, {workers} worker{'s' if workers > 1 else ''}" + " " * 8 + "our ways over it:"
        for line in group:
            rate = f"{line.median:.0f}" if line.median and line.median >= 100 else f"{line.median:.1f}" if line.median else "-"
            ratios = [f"{way.name} {ratio(way.median, line.median)}" for way in our_ways
                      if not line.contestant.ours and same_work(way.contestant, line.contestant)]
            if line.contestant.ours and line.contestant.kind != ALONE:
                local = find(lines, "local", model, workers)
                ratios = [f"{ratio(line.median, local)} local"] if local else []
            yield f"  {line.name:26} {rate:>8}   {', '.join(ratios)}{line.problem and '  FAILED: ' + line.problem}"


def why_not(goal, lines, skipped, switch):
    """Returns why a goal has no figure."""
    for name, with_switch in ((goal.ours, False), (goal.peer, switch)):
        if name in skipped:
            return f"{name} was skipped: {skipped[name]}"
        line = next((line for line in lines if line.contestant.name == name and line.switch == with_switch
                     and (line.model, line.workers) == (goal.model, goal.workers)), None)
        if not line:
            return f"{name} isn't among what was asked for"
        if not line.median:
            return f"{name} failed: {line.problem}"
    return ""


def goals(lines, switch_matters, skipped):
    """Returns (JSON lines, text) of all goals; `skipped` is {name: why} of contestants."""
    rows, text = [], ["", "goals (set on an AMD processor of the fifth Zen generation):"]
    for goal in GOALS:
        switch = goal.switch and switch_matters
        ours = find(lines, goal.ours, goal.model, goal.workers)
        peer = find(lines, goal.peer, goal.model, goal.workers, switch)
        what = f"{goal.ours} over {goal.peer}{' with the AMD switch' if goal.switch else ''}, {goal.model}, {goal.workers} workers"
        row = {"bench": "peers", "goal": what, "at_least": goal.factor}
        if ours and peer:
            reached = ours / peer
            rows.append({**row, "reached": reached, "met": reached >= goal.factor})
            text.append(f"  {'met    ' if reached >= goal.factor else 'NOT MET'} {reached:6.2f} x of {goal.factor:g} x   {what}")
        else:
            rows.append({**row, "met": None, "why": why_not(goal, lines, skipped, switch)})
            text.append(f"  NOT MEASURED: {what}: {rows[-1]['why']}")
    return rows, text
