"""Amounts as Kubernetes writes them, "500m", "1Gi", "2", and what pods ask for."""

import decimal
import re

SUFFIXES = {"": 1, "n": decimal.Decimal("1e-9"), "u": decimal.Decimal("1e-6"), "m": decimal.Decimal("1e-3"), "k": 10**3,
            "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30,
            "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
SHAPE = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]i?|[KMGTPE]i)?")


class BadQuantity(Exception):
    """Text that is no amount."""


def parse(text):
    match = SHAPE.fullmatch(str(text))
    if match is None or (match[2] or "") not in SUFFIXES:
        raise BadQuantity("quantities must match the regular expression "
                          "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    return decimal.Decimal(match[1]) * SUFFIXES[match[2] or ""]


def text_of(amount, like=""):
    """Writes an amount, with the suffix of `like` where that is exact."""
    amount = decimal.Decimal(amount)
    suffix = re.sub(r"^[^a-zA-Z]*", "", str(like))
    if suffix in SUFFIXES and suffix and amount % SUFFIXES[suffix] == 0:
        return f"{int(amount / SUFFIXES[suffix])}{suffix}"
    if amount == amount.to_integral_value():
        return str(int(amount))
    return f"{int((amount * 1000).to_integral_value(decimal.ROUND_CEILING))}m"


def added(total, more):
    for name, amount in more.items():
        total[name] = total.get(name, decimal.Decimal(0)) + amount
    return total


def of_container(container, kind):
    wanted = container.get("resources", {}).get(kind) or {}
    return {name: parse(text) for name, text in wanted.items()}


def of_pod(pod, kind="requests"):
    """What all containers of a pod ask for together, or its largest init container."""
    spec, total = pod["spec"], {}
    for container in spec.get("containers", []):
        added(total, of_container(container, kind))
    for container in spec.get("initContainers") or []:
        for name, amount in of_container(container, kind).items():
            total[name] = max(total.get(name, decimal.Decimal(0)), amount)
    return total


def is_over(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
