#!/usr/bin/env python3
"""Draws the pictures of the examples' pages, examples/*/schedule.svg, which show who sends what when: draw_schedules.py
[--check] [ROOT]

Each is a small simulation: mostly of two workers, the second slower, with one ps between them. Time goes to the right;
a unit is a hundredth of the picture. --check writes nothing, names pictures that are missing or differ, and exits 1."""

import pathlib
import sys

import sources

WIDTH, LEFT, RIGHT = 760, 84, 8
UNIT = (WIDTH - LEFT - RIGHT) / 100
TOP, LANE, BOX = 10, 74, 30  # heights: above the first lane, from lane to lane, of a box
END = 100
SEND, APPLY, RULE, LOOK, MOVE = 3.0, 9.6, 1.8, 2.6, 4.0  # durations
SPEED = {"worker 0": 5.2, "worker 1": 7.4, "worker 2": 6.3}  # per minibatch

# Kinds of boxes and arrows in the legend's order: fill or dashes, label in the legend, meaning.
BOXES = {"minibatch": ("#f6ecd9", "g", "forward and backward"), "look": ("#e6dcf3", "v", "look-ahead"),
         "rule": ("#bfe0b0", "", "the worker's rule"), "server": ("#d9e8f6", "", "the ps applies"),
         "wait": ("#fff", "", "waits"), "other": ("#eee", "", "")}
ARROWS = {"push": ("", "push"), "pull": ("5 3", "pull"), "sum": ("", "parts of the sum")}


def subscript(letter, index):
    return f'{letter}<tspan font-size="10" dy="3">{index}</tspan>'


def window(length):
    return ["g"] if length == 1 else [subscript("g", i + 1) for i in range(length)]


class Picture:
    """Lanes, boxes on them and arrows between them; `text` is the SVG. Whatever comes after the end is cut off."""

    def __init__(self, title, lanes, says=None):
        self.title, self.lanes, self.says, self.parts, self.kinds = title, lanes, says or {}, [], set()

    def x(self, time):
        return LEFT + time * UNIT

    def y(self, lane):
        return TOP + BOX / 2 + LANE * self.lanes.index(lane)

    @staticmethod
    def words(x, y, text, anchor="middle", size=12):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{text}</text>'

    def box(self, lane, start, end, text, kind):
        if start >= END:
            return
        self.kinds.add(kind)
        line = 'stroke="#888" stroke-dasharray="3 3"' if kind == "wait" else 'stroke="#444"'
        self.parts.append(f'<rect x="{self.x(start):.1f}" y="{self.y(lane) - BOX / 2:.1f}" '
                          f'width="{(end - start) * UNIT:.1f}" height="{BOX}" fill="{BOXES[kind][0]}" {line}/>')
        if text:
            self.parts.append(self.words(self.x((start + end) / 2), self.y(lane) + 4, text))

    def arrow(self, source, start, target, end, kind, text="", from_line=False, to_line=False):
        """`from_line`, `to_line`: that end has no box, so it is at the lane's line."""
        if start >= END:
            return
        self.kinds.add(kind)
        side = 1 if self.y(target) > self.y(source) else -1
        y1 = self.y(source) + (0 if from_line else side * (BOX / 2 + 1))
        y2 = self.y(target) - (0 if to_line else side * (BOX / 2 + 1))
        dash = f' stroke-dasharray="{ARROWS[kind][0]}"' if ARROWS[kind][0] else ""
        self.parts.append(f'<path d="M{self.x(start):.1f} {y1:.1f}L{self.x(end):.1f} {y2:.1f}" stroke="#444" fill="none"'
                          f'{dash} marker-end="url(#tip)"/>')
        if text:
            before = kind == "push"
            middle = (self.y(source) + self.y(target)) / 2 + 4
            self.parts.append(self.words(self.x((start + end) / 2) + (-6 if before else 6), middle, text,
                                         "end" if before else "start"))

    def legend(self, y):
        x, parts = 10, []
        for kind in (k for k in (*BOXES, *ARROWS) if k in self.kinds):
            if kind in BOXES:
                fill, text, meaning = BOXES[kind]
                if not meaning:
                    continue
                dash = ' stroke-dasharray="3 3"' if kind == "wait" else ""
                parts.append(f'<rect x="{x:.1f}" y="{y - 12}" width="18" height="16" fill="{fill}" stroke="#444"{dash}/>')
                parts.append(self.words(x + 9, y, text))
            else:
                dash, meaning = ARROWS[kind]
                dash = f' stroke-dasharray="{dash}"' if dash else ""
                parts.append(f'<path d="M{x:.1f} {y - 4}h20" stroke="#444"{dash} marker-end="url(#tip)"/>')
            meaning = self.says.get(kind, meaning)
            parts.append(self.words(x + 24, y, meaning, "start"))
            x += 36 + 6.6 * len(meaning)
        return [*parts, self.words(WIDTH - RIGHT, y, "time →", "end")]

    def text(self):
        bottom = TOP + LANE * (len(self.lanes) - 1) + BOX + 4
        height = bottom + 38
        lanes = [f'<text x="10" y="{self.y(lane) + 5:.1f}">{lane}</text>\n'
                 f'<path d="M{LEFT - 6} {self.y(lane):.1f}H{WIDTH - RIGHT}" stroke="#bbb"/>' for lane in self.lanes]
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            'font-family="sans-serif" font-size="14">',
            f"<title>{self.title}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#444"/></marker>',
            f'<clipPath id="shown"><rect width="{WIDTH - RIGHT}" height="{bottom}"/></clipPath>',
            '<linearGradient id="fade"><stop offset="0" stop-color="#fff" stop-opacity="0"/><stop offset="1" stop-color="#fff"/>'
            "</linearGradient></defs>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', '<g clip-path="url(#shown)">', *lanes, *self.parts, "</g>",
            f'<rect x="{WIDTH - RIGHT - 36}" width="{RIGHT + 37}" height="{bottom}" fill="url(#fade)"/>',
            *self.legend(height - 14), "</svg>", ""])


def train(picture, lane, now, names, rule="rule", look=False, move=False):
    """Draws a worker's window from `now` on; returns its end. `move`: E is subtracted after the first minibatch."""
    for index, name in enumerate(names):
        if look:
            picture.box(lane, now, now + LOOK, "v", "look")
            now += LOOK
        picture.box(lane, now, now + SPEED[lane], name, "minibatch")
        now += SPEED[lane]
        if rule:
            picture.box(lane, now, now + RULE, "", "rule")
            now += RULE
        if move and index == 0:
            picture.box(lane, now, now + MOVE, "− E", "other")
            now += MOVE
    return now


def asynchronous(title, names, applies, pushes="", rule="rule", elastic=False, look=False):
    """Draws independent workers: a window, a push, the update of the ps, the answer. `applies` has labels by
    staleness."""
    picture = Picture(title, ["worker 0", "ps", "worker 1"])
    ready, ps_free, version, pulled = {}, 0.0, 0, {}
    for lane in ("worker 0", "worker 1"):
        picture.arrow("ps", 0, lane, SEND, "pull", from_line=True)
        ready[lane], pulled[lane] = train(picture, lane, SEND, names, rule, look), 0
    while min(ready.values()) < END:
        lane = min(ready, key=ready.get)
        start = max(ready[lane] + SEND, ps_free)
        ps_free = start + APPLY
        picture.arrow(lane, ready[lane], "ps", ready[lane] + SEND, "push", pushes)
        picture.box("ps", start, ps_free, applies[min(version - pulled[lane], len(applies) - 1)], "server")
        version += 1
        pulled[lane] = version
        picture.arrow("ps", ps_free, lane, ps_free + SEND, "pull", "E" if elastic else "")
        ready[lane] = train(picture, lane, ps_free + SEND, names, rule, look, elastic)
    return picture


def synchronous(title, names, applies, pushes=("", ""), rule="rule"):
    """Draws rounds: the ps wait for every worker's commit, apply the mean, and all go on from the new values."""
    lanes = ("worker 0", "worker 1")
    picture, now = Picture(title, ["worker 0", "ps", "worker 1"]), SEND
    for lane in lanes:
        picture.arrow("ps", 0, lane, SEND, "pull", from_line=True)
    while now < END:
        done = {lane: train(picture, lane, now, names, rule) for lane in lanes}
        start = max(done.values()) + SEND
        now = start + APPLY + SEND
        for lane, push in zip(lanes, pushes):
            last = done[lane] == max(done.values())
            if not last:
                picture.box(lane, done[lane], now, "waits", "wait")
            picture.arrow(lane, done[lane], "ps", done[lane] + SEND, "push", push, to_line=not last)
            picture.arrow("ps", start + APPLY, lane, now, "pull")
        picture.box("ps", start, start + APPLY, applies, "server")
    return picture


def one_process():
    picture, now = Picture("One process: a minibatch, then the update of its own values", ["process"], {"rule": "the rule"}), 0.0
    while now < END:
        picture.box("process", now, now + 7, "g", "minibatch")
        picture.box("process", now + 7, now + 13, "Adam", "rule")
        now += 13
    return picture


def one_worker():
    picture = Picture("One worker and one ps: a minibatch, the push of its gradient, the update, the pull", ["ps", "worker 0"])
    picture.arrow("ps", 0, "worker 0", SEND, "pull", from_line=True)
    now = SEND
    while now < END:
        now = train(picture, "worker 0", now, ["g"], rule="")
        picture.arrow("worker 0", now, "ps", now + SEND, "push")
        now += SEND + APPLY
        picture.box("ps", now - APPLY, now, "Adam", "server")
        picture.arrow("ps", now, "worker 0", now + SEND, "pull")
        now += SEND
    return picture


def all_reduce():
    lanes = ["worker 0", "worker 1", "worker 2"]
    picture = Picture("All-reduce: the workers average their gradients among themselves, and each applies the mean", lanes,
                      {"rule": "the rule, the same on each"})
    now = 0.0
    while now < END:
        start = now + max(SPEED.values())
        for lane in lanes:
            picture.box(lane, now, now + SPEED[lane], "g", "minibatch")
            if now + SPEED[lane] < start:
                picture.box(lane, now + SPEED[lane], start, "", "wait")
            picture.box(lane, start + 5.4, start + 15, "− η mean", "rule")
        for above, below in zip(lanes, lanes[1:]):
            picture.arrow(above, start + 0.6, below, start + 5, "sum")
            picture.arrow(below, start + 0.6, above, start + 5, "sum")
        now = start + 15
    return picture


def alone(title, pushes, makes, pulls_first):
    """Draws models that are trained without communication. At the end the chief gets all of them, through a queue on
    the ps, and `makes` one result."""
    picture = Picture(title, ["worker 0", "ps", "worker 1"])
    names, begin, done = ["g", "g", "…", "g"], SEND if pulls_first else 0.0, {}
    for lane in ("worker 0", "worker 1"):
        if pulls_first:
            picture.arrow("ps", 0, lane, SEND, "pull", from_line=True)
        done[lane] = train(picture, lane, begin, names)
        picture.arrow(lane, done[lane], "ps", done[lane] + SEND, "push", pushes, to_line=done[lane] < max(done.values()))
    arrived = max(done.values()) + SEND
    picture.box("ps", arrived, arrived + APPLY, "queue", "other")
    picture.arrow("ps", arrived + APPLY, "worker 0", arrived + APPLY + SEND, "pull", f"all {pushes}")
    made = arrived + APPLY + SEND
    picture.box("worker 0", done["worker 0"], made, "waits", "wait")
    picture.box("worker 0", made, made + 12, makes, "other")
    if pulls_first:
        picture.arrow("worker 0", made + 12, "ps", made + 12 + SEND, "push", "Δ")
        picture.box("ps", made + 12 + SEND, made + 12 + SEND + APPLY, "+ Δ", "server")
    return picture


def pictures():
    """Returns every example's picture by the name of its folder."""
    three = window(3)
    return {
        "non_distributed": one_process(),
        "distributed_setup": one_worker(),
        "hogwild": asynchronous("Hogwild: every worker's gradient is applied when it comes; nobody waits for anybody",
                                window(1), ["− η g"], rule=""),
        "downpour": asynchronous("DOWNPOUR: three minibatches by a rule of the worker's own, then a push and a pull",
                                 three, ["Adagrad"], "Σ g"),
        "downpour_easy": asynchronous("DOWNPOUR-Easy: three minibatches with SGD, then the difference is pushed and added",
                                      three, ["+ Δ"], "Δ"),
        "agn": asynchronous("AGN: as DOWNPOUR-Easy, but what is added is divided by the number of minibatches",
                            three, ["+ Δ / 3"], "Δ"),
        "synchronous_sgd": synchronous("Synchronous SGD: the ps wait for every worker's gradient and apply the mean",
                                       window(1), "− η mean", rule=""),
        "synchronous_sgd_different_learning_rates": synchronous(
            "Synchronous SGD: every worker multiplies its gradient by a rate of its own, the ps apply the mean",
            window(1), "− mean", tuple(f"{subscript('η', i)}<tspan dy='-3'> g</tspan>" for i in range(2)), ""),
        "sagn": synchronous("SAGN: each worker trains by itself for three minibatches; the ps apply the mean of their gradients",
                            three, "Adam", ("Σ g / 3", "Σ g / 3")),
        "dynsgd": asynchronous("DynSGD: the ps divide a difference by one more than the updates that it has missed",
                               three, ["+ Δ", "+ Δ / 2", "+ Δ / 3"], "Δ"),
        "aeasgd": asynchronous("AEASGD: every three minibatches a worker and the centre on the ps move towards each other",
                               three, ["+ E"], "θ", elastic=True),
        "aeamsgd": asynchronous("AEAMSGD: as AEASGD, and before each minibatch a worker looks ahead along its momentum",
                                three, ["+ E"], "θ", elastic=True, look=True),
        "diloco": synchronous("DiLoCo: H minibatches of AdamW on each worker, then Nesterov on the ps along the mean difference",
                              [subscript("g", 1), "…", subscript("g", "H")], "Nesterov", ("−Δ", "−Δ")),
        "all_reduce": all_reduce(),
        "one_shot_averaging": alone("One-shot averaging: each worker trains alone; at the end the mean of their values is taken",
                                    "θ", "mean of θ", True),
        "ensemble": alone("Ensemble: each worker trains a model of its own; their answers are averaged", "p", "mean of p", False),
    }


def main(arguments):
    check = "--check" in arguments
    rest = [a for a in arguments if a != "--check"]
    root = pathlib.Path(rest[0] if rest else sources.ROOT)
    wrong = []
    for folder, picture in pictures().items():
        path, text = root / "examples" / folder / "schedule.svg", picture.text()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            wrong.append(f"{path.relative_to(root)}: not what tools/draw_schedules.py draws; run it")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
