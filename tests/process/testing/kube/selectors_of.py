"""Which objects a selector chooses: of labels, as text and as objects have it, and of fields."""

import re


def _requirement(text):
    text = text.strip()
    match = re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", text)
    if match:
        values = {value.strip() for value in match[3].split(",")}
        return match[1], "In" if match[2] == "in" else "NotIn", values
    match = re.fullmatch(r"([^=!\s]+)\s*(==|=|!=)\s*(\S*)", text)
    if match:
        return match[1], "NotIn" if match[2] == "!=" else "In", {match[3]}
    if text.startswith("!"):
        return text[1:].strip(), "DoesNotExist", set()
    return text, "Exists", set()


def holds(labels, key, operator, values):
    there, value = key in labels, labels.get(key)
    if operator == "In":
        return there and value in values
    if operator == "NotIn":
        return not there or value not in values
    if operator == "Exists":
        return there
    if operator == "DoesNotExist":
        return not there
    if operator in ("Gt", "Lt"):
        wanted = int(next(iter(values)))
        return there and (int(value) > wanted if operator == "Gt" else int(value) < wanted)
    return False


def labels_match(labels, text):
    """`text`: "a=b,c in (d, e),!f"."""
    parts = re.split(r",(?![^(]*\))", text) if text else []
    return all(holds(labels, *_requirement(part)) for part in parts if part.strip())


def chosen_by(selector, labels):
    """`selector`: {matchLabels, matchExpressions}. An empty one chooses all, None nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(holds(labels, one["key"], one["operator"], set(one.get("values") or []))
               for one in selector.get("matchExpressions") or [])


def field_of(value, path):
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def fields_match(value, text):
    for part in text.split(",") if text else []:
        path, operator, wanted = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part).groups()
        if (field_of(value, path) == wanted) == (operator == "!="):
            return False
    return True


def matcher(label_selector, field_selector):
    return lambda value: (labels_match(value["metadata"].get("labels") or {}, label_selector)
                          and fields_match(value, field_selector))
