"""What each node alone keeps alive: the dominator tree of a graph of references.

A node dominates another when every path from the root to the other runs through it: were it dropped, the other would
go too. The bytes a node dominates are its *retained* bytes, as Eclipse MAT calls them.

The algorithm is Cooper, Harvey and Kennedy's "A Simple, Fast Dominance Algorithm" (2001).
"""

from __future__ import annotations

from collections.abc import Sequence

UNREACHED = -1


def postorder(children: Sequence[Sequence[int]], root: int) -> list[int]:
    """The nodes reachable from `root`, each after all that were first reached through it."""
    order, seen = [], bytearray(len(children))
    seen[root] = 1
    stack = [(root, iter(children[root]))]
    while stack:
        node, rest = stack[-1]
        for child in rest:
            if not seen[child]:
                seen[child] = 1
                stack.append((child, iter(children[child])))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def immediate_dominators(children: Sequence[Sequence[int]], root: int) -> list[int]:
    """For each node the node that immediately dominates it; the root's is itself, an unreachable node's UNREACHED."""
    order = postorder(children, root)
    number = [UNREACHED] * len(children)
    for position, node in enumerate(order):
        number[node] = position
    parents: list[list[int]] = [[] for _ in children]
    for node in order:
        for child in children[node]:
            parents[child].append(node)
    dominator = [UNREACHED] * len(children)
    dominator[root] = root
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            best = UNREACHED
            for parent in parents[node]:
                if dominator[parent] != UNREACHED:
                    best = parent if best == UNREACHED else _common(dominator, number, best, parent)
            if dominator[node] != best:
                dominator[node] = best
                changed = True
    return dominator


def _common(dominator: list[int], number: list[int], one: int, other: int) -> int:
    while one != other:
        while number[one] < number[other]:
            one = dominator[one]
        while number[other] < number[one]:
            other = dominator[other]
    return one


def retained(weights: Sequence[int], dominator: Sequence[int], order: Sequence[int]) -> list[int]:
    """The sum of `weights` over what each node dominates, itself included. `order` is a postorder from the root."""
    total = list(weights)
    for node in order:
        parent = dominator[node]
        if parent not in (node, UNREACHED):
            # A dominated node always comes before its dominator in a postorder.
            total[parent] += total[node]
    return total


def components(children: Sequence[Sequence[int]], nodes: Sequence[int]) -> list[list[int]]:
    """The strongly connected components among `nodes`, sources last (Tarjan, 1972, without recursion)."""
    inside = set(nodes)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []
    for start in nodes:
        if start in index:
            continue
        work = [(start, iter(children[start]))]
        index[start] = low[start] = len(index)
        open_nodes.append(start)
        is_open.add(start)
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in inside:
                    continue
                if child not in index:
                    index[child] = low[child] = len(index)
                    open_nodes.append(child)
                    is_open.add(child)
                    work.append((child, iter(children[child])))
                    break
                if child in is_open:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_close(node, open_nodes, is_open))
    return found


def _close(node: int, open_nodes: list[int], is_open: set[int]) -> list[int]:
    position = open_nodes.index(node) if open_nodes[-1] != node else len(open_nodes) - 1
    component = open_nodes[position:]
    del open_nodes[position:]
    is_open.difference_update(component)
    return component
