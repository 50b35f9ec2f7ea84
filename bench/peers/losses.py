"""Checks that all contestants train the same: compares the losses of their first steps with those of one plain
process."""

import dataclasses
import statistics

from contestants import ALONE, ASYNCHRONOUS, SYNCHRONOUS

# For one worker, and for synchronous ones: the same curve except for the order of float32 sums, which differs in every
# library. Relative, at every step.
TOLERANCE = 1e-4
# For several asynchronous workers: the mean of the last losses, relative to that of one process after as many updates,
# with the minibatches in turn. It depends on staleness and the processes' speeds; a lost or doubled update per step
# would show.
BAND = 0.1
LAST = 16  # losses of each worker in the mean


@dataclasses.dataclass
class Verdict:
    good: bool
    text: str


def curves(results, workers):
    """Returns the losses of each worker; a single result with all workers' losses has them side by side."""
    if len(results) == workers:
        return [result["losses"] for result in results]
    return [results[0]["losses"][worker::workers] for worker in range(workers)]


def reference_of(contestant, workers):
    """Returns the name of the muster process that computes what this contestant should."""
    return "in_step" if contestant.kind == SYNCHRONOUS else "in_turn"


def same_curve(found, expected):
    distances = [abs(a - b) / abs(b) for mine, theirs in zip(found, expected) for a, b in zip(mine, theirs)]
    complete = [len(curve) for curve in found] == [len(curve) for curve in expected]
    worst = max(distances, default=float("inf")) if complete else float("inf")
    fall = f"{expected[0][0]:.4f} to {expected[0][-1]:.4f}" if expected[0] else "no losses"
    return Verdict(worst <= TOLERANCE, f"largest difference {worst:.1e} (at most {TOLERANCE:g}); losses go from {fall}")


def within_band(found, expected):
    ends = [statistics.fmean(loss for curve in side for loss in curve[-LAST:]) for side in (found, expected)]
    distance = abs(ends[0] - ends[1]) / abs(ends[1])
    return Verdict(distance <= BAND, f"mean of the last losses {ends[0]:.4f}, one process has {ends[1]:.4f}: "
                                     f"{distance:.1%} apart (at most {BAND:.0%})")


def compare(contestant, workers, results, expected):
    """`expected` is the reference's result for as many workers and steps."""
    found, right = curves(results, workers), curves([expected], workers)
    if contestant.kind == ASYNCHRONOUS and workers > 1:
        return within_band(found, right)
    return same_curve(found, right)


def is_checked(contestant, workers):
    """False for several independent processes."""
    return contestant.kind != ALONE or workers == 1
