"""Draws what muster/LAYERS says: the layers in docs/architecture.md, the rooms of each in docs/rooms.md (Mermaid).

`tools/check_layers.py --write` draws, `tools/check_layers.py` compares."""

import re

BEGIN, END = "<!-- drawn from muster/LAYERS -->", "<!-- /drawn -->"
DRAWN = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END), re.DOTALL)


def shortest(table):
    """The table without the arrows that a longer path says already."""

    def reached(start, without):
        found, left = set(), [o for o in table[start] if o != without]
        while left:
            folder = left.pop()
            if folder not in found:
                found.add(folder)
                left += table[folder]
        return found

    return {folder: [o for o in others if o in table and o not in reached(folder, o)] for folder, others in table.items()}


def graph(table, name=lambda folder: folder, torch=()):
    """Mermaid: an arrow from each folder to what it includes, the lowest at the bottom."""
    identity = {folder: f"n{i}" for i, folder in enumerate(table)}
    lines = ["```mermaid", "graph TD"]
    lines += [f"  {identity[folder]}[{name(folder)}]" for folder in reversed(table)]
    arrows = shortest(table)
    lines += [f"  {identity[folder]} --> " + " & ".join(identity[other] for other in sorted(arrows[folder], key=list(table).index))
              for folder in reversed(table) if arrows[folder]]
    if torch:
        lines += ["  classDef torch stroke-dasharray: 4", "  class " + ",".join(identity[f] for f in table if f in torch) + " torch"]
    return lines + ["```"]


def layers_drawing(layers):
    return "\n".join([BEGIN, *graph(layers.allowed, torch=layers.torch), END])


def rooms_drawing(layers):
    lines = [BEGIN]
    for layer in layers.allowed:
        rooms = {room: layers.rooms[room] for room in layers.rooms_of(layer)}
        if not rooms:
            continue
        lines += ["", f"## {layer}", "", "| room | what is in it |", "|---|---|"]
        lines += [f"| `{room.removesuffix('/.')}/` | {layers.words[room]} |" for room in rooms]
        if len(rooms) > 3:
            lines += ["", *graph(rooms, lambda room: room.removesuffix("/."))]
    return "\n".join([*lines, END])


PAGES = {"docs/architecture.md": layers_drawing, "docs/rooms.md": rooms_drawing}


def write(root, layers):
    for page, drawing in PAGES.items():
        path = root / page
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        path.write_text(DRAWN.sub(lambda _: drawing(layers), text), encoding="utf-8")


def problems(root, layers):
    for page, drawing in PAGES.items():
        path = root / page
        if path.is_file() and drawing(layers) not in path.read_text(encoding="utf-8"):
            yield f"{page}: isn't what muster/LAYERS says; tools/check_layers.py --write draws it"
