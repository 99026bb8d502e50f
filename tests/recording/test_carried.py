"""Which variables outlive a pass of a loop, told from bytecode alone, on every Python."""

from __future__ import annotations

import pytest

from oomscope.recording.census.carried import carried_names

CASES = [
    ("for i in r:\n  out, hidden = f(i, hidden)\n  loss = out.sum()", {"f", "hidden"}),
    ("for i in r:\n  loss = f(i)\n  total = total + loss", {"f", "total"}),
    ("for i in r:\n  loss = f(i)\n  losses.append(loss)", {"f", "losses"}),
    ("while go():\n  x = f()\n  y = x + x", {"go", "f"}),
    ("for i in r:\n  for j in i:\n    x = g(x)", {"g", "x"}),
    ("for i in r:\n  x = f(i)\n  for j in i:\n    y = g(x)", {"f", "g", "x"}),
    ("x = f(y)", set()),
    ("y = [x for x in r]", set()),
]


@pytest.mark.parametrize(("body", "names"), CASES)
def test_what_a_loop_reads_before_it_writes_is_carried_at_module_level(body: str, names: set[str]):
    assert carried_names(compile(body, "a.py", "exec")) - {"r"} >= names
    written = {"i", "j", "loss", "out", "y"} - names
    assert not carried_names(compile(body, "a.py", "exec")) & written


@pytest.mark.parametrize(("body", "names"), CASES)
def test_and_in_functions(body: str, names: set[str]):
    arguments = "f, g, go, r, x, y, hidden, total, losses"
    text = f"def h({arguments}):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
    scope: dict = {}
    exec(text, scope)
    found = carried_names(scope["h"].__code__)
    assert found >= names - {"r"}
    assert not found & ({"i", "j", "loss", "out"} - names)


def test_a_variable_that_a_nested_function_shares_is_carried_as_well():
    def train(f, state=0):
        for item in range(3):
            state = f(state, item)
        return lambda: state

    assert "state" in carried_names(train.__code__)
