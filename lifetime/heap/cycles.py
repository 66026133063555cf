"""Strongly connected parts of the graph, and a shortest way around one. Nothing here recurses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from lifetime.heap.paths import Numbered


def ancestors(graph: Numbered, nodes: Iterable[int]) -> set[int]:
    """The nodes and everything that refers to them, directly or not."""
    seen = set(nodes)
    waiting = list(seen)
    while waiting:
        for edge in graph.entering(waiting.pop()):
            above = graph.source[edge]
            if above not in seen:
                seen.add(above)
                waiting.append(above)
    return seen


def components(graph: Numbered, within: Iterable[int], without: Collection[int] = ()) -> list[list[int]]:
    """Strongly connected parts of some of the nodes, `without` some edges; each before the parts that refer to it (Tarjan)."""
    order = list(within)
    inside = set(order)
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    done: set[int] = set()
    open_: list[int] = []
    found: list[list[int]] = []
    for start in order:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        open_.append(start)
        work = [(start, iter(graph.leaving(start)))]
        while work:
            node, rest = work[-1]
            for edge in rest:
                there = graph.target[edge]
                if there not in inside or edge in without:
                    continue
                if there not in number:
                    number[there] = low[there] = len(number)
                    open_.append(there)
                    work.append((there, iter(graph.leaving(there))))
                    break
                if there not in done:
                    low[node] = min(low[node], number[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    found.append(_closed(node, open_))
                    done.update(found[-1])
    return found


def _closed(node: int, open_: list[int]) -> list[int]:
    part = [open_.pop()]
    while part[-1] != node:
        part.append(open_.pop())
    return part


def is_cycle(graph: Numbered, part: Collection[int], without: Collection[int] = ()) -> bool:
    return len(part) > 1 or any(graph.target[e] in part and e not in without for node in part for e in graph.leaving(node))


def sources(graph: Numbered, within: Collection[int]) -> list[list[int]]:
    """The strongly connected parts that nothing else in `within` refers to: where to look for the one who holds."""
    inside = set(within)
    found = []
    for part in components(graph, within):
        own = set(part)
        above = (graph.source[e] for node in part for e in graph.entering(node))
        if not any(a in inside and a not in own for a in above):
            found.append(sorted(part))
    return sorted(found)


def around(graph: Numbered, node: int, part: Collection[int], without: Collection[int] = ()) -> list[int]:
    """The edges of a shortest way from `node` back to itself inside its part; empty where there is none."""
    via: dict[int, int] = {}
    waiting = deque([node])
    while waiting:
        here = waiting.popleft()
        for edge in graph.leaving(here):
            there = graph.target[edge]
            if edge in without:
                continue
            if there == node:
                return [*traced(graph, here, via), edge]
            if there in part and there not in via:
                via[there] = edge
                waiting.append(there)
    return []


def descend(graph: Numbered, start: Iterable[int], within: Collection[int], without: Collection[int] = ()) -> dict[int, int]:
    """For each node of `within` below `start`, not among it, the last edge of a shortest way from there."""
    first = list(start)
    inside = set(first)
    via: dict[int, int] = {}
    waiting = deque(first)
    while waiting:
        for edge in graph.leaving(waiting.popleft()):
            there = graph.target[edge]
            if there in within and there not in via and there not in inside and edge not in without:
                via[there] = edge
                waiting.append(there)
    return via


def traced(graph: Numbered, node: int, via: dict[int, int]) -> list[int]:
    """The edges that lead down to `node` from the nearest node that `via` has no edge into."""
    edges = []
    while node in via:
        edges.append(via[node])
        node = graph.source[via[node]]
    edges.reverse()
    return edges


def below_whole(graph: Numbered, nodes: Iterable[int], is_seen: Callable[[int], bool]) -> set[int]:
    """Those of the nodes that hang below a cycle, with nothing above it, all of whose nodes are seen."""
    wanted = set(nodes)
    within = ancestors(graph, wanted)
    found: set[int] = set()
    for part in sources(graph, within):
        if is_cycle(graph, set(part)) and all(map(is_seen, part)):
            found.update(part, descend(graph, part, within))
    return found & wanted
