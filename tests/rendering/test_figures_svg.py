"""Figures of matplotlib become SVG that obeys the page's policy and follows its colours."""

from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from oomscope.rendering.html import palette
from oomscope.rendering.html.svg import StyleSheet, _short_path, inline_svg, settings

Point = tuple[float, float]
coordinates = st.floats(-2000, 2000).map(lambda value: round(value, 6))


def drawn() -> tuple[str, str]:
    sheet = StyleSheet()
    with settings("one"):
        figure = Figure(figsize=(4, 2))
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 2], color=palette.RESERVED.light)
        axes.set_title("$x^2$ <script>")
        return str(inline_svg(figure, "one", "A <title>", "What it shows", sheet)), sheet.css()


def test_no_style_attribute_is_left_and_colours_are_variables():
    svg, css = drawn()
    assert "style=" not in svg
    assert "<style" not in svg
    assert "var(--reserved)" in css
    assert set(re.findall(r'class="(m\d+)"', svg)) <= set(re.findall(r"\.(m\d+)\{", css))


def test_labels_are_text_and_never_formulas():
    svg, _ = drawn()
    assert "$x^2$ &lt;script&gt;" in svg
    assert "A &lt;title&gt;" in svg


def test_the_same_figure_is_written_the_same_way():
    assert drawn() == drawn()


def test_no_two_colours_of_the_palette_are_one():
    light = [colour.light for colour in palette.ALL]
    assert len(light) == len(set(light))


@given(st.lists(st.tuples(coordinates, coordinates), min_size=2, max_size=30))
def test_short_paths_pass_through_the_same_points(points: list[Point]):
    """Within the tenth of a unit that they are rounded to; stretches along one line may be joined."""
    path = "M " + " L ".join(f"{x:.6f} {y:.6f}" for x, y in points)
    corners = _corners(_short_path(path))
    rounded = [(round(x * 10), round(y * 10)) for x, y in points]
    assert corners[0] == rounded[0]
    assert corners[-1] == rounded[-1]
    assert set(corners) <= set(rounded)


def _corners(path: str) -> list[tuple[int, int]]:
    found, x, y = [], 0, 0
    for command, arguments in re.findall(r"([MhvlLz])([^MhvlLz]*)", path):
        numbers = [round(float(number) * 10) for number in arguments.split()]
        if command == "M":
            x, y = numbers
        elif command == "h":
            x += numbers[0]
        elif command == "v":
            y += numbers[0]
        elif command == "l":
            x, y = x + numbers[0], y + numbers[1]
        found.append((x, y))
    return found


def test_loading_without_help_leaves_matplotlib_as_it_was_and_the_figures_the_same() -> None:
    code = (
        "import inspect, sys\n"
        "if sys.argv[1:]:\n"
        "    from oomscope.rendering.html.quick_matplotlib import load_matplotlib\n"
        "    load_matplotlib()\n"
        "import numpy as np\n"
        "from matplotlib.artist import Artist, kwdoc\n"
        "class Late(Artist): pass\n"
        "assert 'visible' in inspect.signature(Late.set).parameters and 'visible' in kwdoc(Late)\n"
        "from oomscope.rendering.html import charts\n"
        "from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings\n"
        "with settings('f'):\n"
        "    figure = charts.lifetimes(['a', 'b'], np.array([5, 3]), np.array([1, 2]))\n"
        "    print(inline_svg(figure, 'f', 'title', 'description', StyleSheet()))\n"
    )
    whole, quick = (
        subprocess.run([sys.executable, "-c", code, *quick], capture_output=True, text=True, check=True).stdout
        for quick in ([], ["quick"])
    )
    assert "<svg" in whole
    assert quick == whole


_LOADED = """
import sys
from oomscope.rendering.html import quick_matplotlib
if sys.argv[1] == "failing":
    quick_matplotlib._Later.__getattr__ = None
if sys.argv[1] != "whole":
    quick_matplotlib.load_matplotlib()
print("pyparsing" in sys.modules, "PIL.Image" in sys.modules, file=sys.stderr)
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings
with settings("f"):
    figure = Figure()
    axes = figure.add_subplot()
    axes.imshow([[1, 2], [3, 4]])
    axes.text(0, 0, "$x^2$", parse_math=True, fontproperties=FontProperties("serif:bold"))
    print(inline_svg(figure, "f", "title", "description", StyleSheet()))
"""


def test_what_no_figure_of_ours_holds_is_loaded_when_it_is_asked_for() -> None:
    def drawn(how: str) -> tuple[str, str]:
        done = subprocess.run([sys.executable, "-c", _LOADED, how], capture_output=True, text=True, check=True)
        return done.stdout, done.stderr.splitlines()[0]

    whole, quick, failing = map(drawn, ("whole", "quick", "failing"))
    assert "<image" in whole[0]
    assert quick == (whole[0], "False False")
    assert failing[0] == whole[0], "where another release of matplotlib does not bear the stand-ins, it is loaded anew"
