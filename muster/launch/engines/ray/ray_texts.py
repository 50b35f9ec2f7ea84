"""What the driver of a job of Ray says: whether nodes can ever be had, what it waits for, why an actor has died. Needs no
Ray."""

from host_process import one_line

MOST_NODES_SHOWN = 6


def shown_amount(name, amount):
    if "memory" in name:
        return f"{amount / 2**30:.1f} GB"
    return f"{amount:g}"


def shown(resources):
    """Returns "{CPU: 4, memory: 2.0 GB}"."""
    return "{" + ", ".join(f"{name}: {shown_amount(name, amount)}" for name, amount in sorted(resources.items())) + "}"


def has(resources, bundle):
    # Ray counts in ten-thousandths.
    return all(resources.get(name, 0) + 1e-4 >= amount for name, amount in bundle.items())


def count_of_nodes(count):
    return f"{count} nodes" if count > 1 else "a node"


def is_made_as(total, resources):
    """Whether a node with so much in all may be of the group whose nodes have these resources."""
    return all(total.get(name, 0) == amount for name, amount in resources.items() if "memory" not in name)


def most_nodes(bundle, nodes, groups):
    """Returns how many nodes with this bundle there can be at once; -1: any number. As for `why_never`. A node that no group
    makes, as the head of many clusters, is there besides all that the groups make."""
    makes = [most for resources, most in groups if has(resources, bundle)]
    if -1 in makes:
        return -1
    fit = [node["total"] for node in nodes if has(node["total"], bundle)]
    others = sum(1 for total in fit if not any(is_made_as(total, resources) for resources, _ in groups))
    return others + max(len(fit) - others, sum(makes))


def why_never(bundle, count, nodes, groups, autoscaler=False):
    """Returns why `count` nodes with this bundle each can never be had, and what to do; "" if they can be. The arguments are
    those of `cause_of_never`."""
    cause = cause_of_never(bundle, count, nodes, groups, autoscaler)
    if not cause:
        return ""
    return f"{cause}. Ask for less (resources, ray: nodes), or for nodes that come later: ray: {{autoscaler: true}}"


def cause_of_never(bundle, count, nodes, groups, autoscaler=False):
    """Returns why `count` nodes with this bundle each can never be had; "" if they can be.

    `nodes`: those of the cluster, {"name": ..., "total": {...}}; `groups`: what an autoscaler may make, [(resources, how
    many at most, -1: any number)]; `autoscaler`: one may make nodes that aren't in `groups`.
    """
    if autoscaler:
        return ""
    most = most_nodes(bundle, nodes, groups)
    if most == -1 or most >= count:
        return ""
    largest = {}
    for resources in [node["total"] for node in nodes] + [resources for resources, _ in groups]:
        for name in bundle:
            largest[name] = max(largest.get(name, 0), resources.get(name, 0))
    cluster = f"{len(nodes)} node{'s' if len(nodes) != 1 else ''}"
    if groups:
        cluster += f" and {sum(max(most, 0) for _, most in groups)} that its autoscaler may make"
    return (
        f"Ray can never give {count_of_nodes(count)} with {shown(bundle)}{' each' if count > 1 else ''}: of its {cluster}, "
        f"{most} {'have' if most != 1 else 'has'} as much; the most that one has is {shown(largest)}"
    )


def count_with_room(bundle, nodes):
    """Returns on how many of the nodes, {"free": {...}}, the bundle has room now."""
    return sum(1 for node in nodes if has(node["free"], bundle))


def begins_with(count, asked, why):
    """Returns that a job begins with fewer nodes than it has asked for, and why there aren't more."""
    return f"begins with {count} of {asked} nodes, as nobody waits for that of the evaluator: {why}"


def of_autoscaler(bundle, groups, autoscaler):
    """Returns what an autoscaler may do for one that waits for this bundle; "" if there is none. As for `why_never`."""
    makes = [most for resources, most in groups if has(resources, bundle)]
    if -1 in makes:
        return "; its autoscaler may make any number of such nodes"
    if sum(makes) > 0:
        return f"; its autoscaler may make up to {sum(makes)} such node{'s' if sum(makes) != 1 else ''} in all"
    if autoscaler:
        return "; an autoscaler may make more nodes (ray: {autoscaler: true})"
    return "; its autoscaler makes no such nodes" if groups else ""


def why_waits(bundle, count, nodes, groups=(), autoscaler=False, another=False, died=False):
    """Returns what is waited for, what is free, and what an autoscaler may make: for nodes {"name": ..., "total": ..., "free":
    {...}}, the rest as for `why_never`. `another`: a node that the job doesn't have already; `died`: since the one that it
    had has died."""
    what = "another node" if another or died else count_of_nodes(count)
    return (
        f"waits for {what} with {shown(bundle)}{' each' if count > 1 else ''}"
        f"{', as its own has died' if died else ''}; {free_now(bundle, nodes)}"
        f"{of_autoscaler(bundle, groups, autoscaler)}"
    )


def free_now(bundle, nodes):
    """Returns how much of what is in the bundle is free on nodes {"name": ..., "total": ..., "free": {...}}."""
    free = []
    for node in nodes[:MOST_NODES_SHOWN]:
        amounts = [
            f"{shown_amount(name, node['free'].get(name, 0))} of {shown_amount(name, node['total'].get(name, 0))} {name}"
            for name in sorted(bundle)
        ]
        free.append(f"{node['name']} {', '.join(amounts)}")
    if len(nodes) > MOST_NODES_SHOWN:
        free.append(f"and {len(nodes) - MOST_NODES_SHOWN} more nodes")
    return f"free now: {'; '.join(free)}"


def why_died(error_text):
    """Returns the cause of an actor's death from what Ray says about it."""
    text = one_line(error_text, 600)
    if "memory monitor" in text.lower() or "low on memory" in text:
        return f"Ray's memory monitor has killed it: {text}"
    if "node has died" in text or "node was terminated" in text or "its node" in text:
        return f"its node has died: {text}"
    return f"its actor has died: {text}"
