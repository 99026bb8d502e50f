"""The dominator tree against its definition, on random graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oomscope.recording.census.dominators import UNREACHED, components, immediate_dominators, postorder, retained


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 9))
    node = st.integers(0, count - 1)
    children = draw(st.lists(st.lists(node, max_size=4), min_size=count, max_size=count))
    weights = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
    return children, weights


def reachable(children, without=None):
    if without == 0:
        return set()
    seen, queue = {0}, [0]
    while queue:
        for child in children[queue.pop()]:
            if child not in seen and child != without:
                seen.add(child)
                queue.append(child)
    return seen


@given(graphs())
def test_a_node_retains_what_only_it_leads_to(graph):
    children, weights = graph
    order = postorder(children, 0)
    everything = reachable(children)
    assert set(order) == everything
    dominator = immediate_dominators(children, 0)
    kept = retained(weights, dominator, order)
    for node in everything:
        lost = everything - reachable(children, without=node)
        assert kept[node] == sum(weights[other] for other in lost)
    for node in set(range(len(children))) - everything:
        assert dominator[node] == UNREACHED


@given(graphs())
def test_components_are_those_that_reach_each_other_sources_last(graph):
    children, _ = graph
    nodes = list(range(len(children)))

    def below(start):
        seen, queue = set(), [start]
        while queue:
            for child in children[queue.pop()]:
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
        return seen

    found = components(children, nodes)
    assert sorted(node for component in found for node in component) == nodes
    place = {node: index for index, component in enumerate(found) for node in component}
    for one in nodes:
        for other in nodes:
            together = one == other or (other in below(one) and one in below(other))
            assert (place[one] == place[other]) == together
        assert all(place[child] <= place[one] for child in children[one])


def test_a_chain_longer_than_the_recursion_limit():
    count = 50_000
    children = [[index + 1] for index in range(count - 1)] + [[]]
    order = postorder(children, 0)
    kept = retained([1] * count, immediate_dominators(children, 0), order)
    assert kept[0] == count
    assert len(components(children, list(range(count)))) == count
