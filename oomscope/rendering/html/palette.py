"""The colours of the report, defined once: one for each category, the same in every view.

They start from the colour-blind-safe sets of Okabe & Ito and of Paul Tol and differ in lightness as well as in hue.
Figures are drawn in the light colours; each is then replaced by the CSS variable that the page defines for light,
dark and print, so a figure follows the page.
"""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """A CSS variable with its values; `light` also names it inside figures, so no two may be equal."""

    variable: str
    light: str
    dark: str


CATEGORY_COLOURS = {
    "parameter": Colour("c-parameter", "#0072b2", "#3b9bdc"),
    "gradient": Colour("c-gradient", "#e69f00", "#e9ab2b"),
    "optimizer_state": Colour("c-optimizer_state", "#009e73", "#1fb58c"),
    "buffer": Colour("c-buffer", "#56b4e9", "#86cdf3"),
    "activation": Colour("c-activation", "#d55e00", "#ee7e32"),
    "temporary": Colour("c-temporary", "#cc79a7", "#dd94bd"),
    "input": Colour("c-input", "#a89200", "#d9c64a"),
    "workspace": Colour("c-workspace", "#6a51a3", "#a08fd6"),
    "unknown": Colour("c-unknown", "#a08b72", "#b39c80"),
}

SITE_COLOURS = tuple(
    Colour(f"s-{number}", light, dark)
    for number, (light, dark) in enumerate(
        [
            ("#332288", "#8d7fe0"), ("#cc6677", "#e2909d"), ("#117733", "#3da862"), ("#ddaa33", "#e6bf62"),
            ("#88ccee", "#a2d9f4"), ("#882255", "#cb5f97"), ("#44aa99", "#66c9b8"), ("#999933", "#bcbc58"),
        ]
    )
)  # fmt: skip
"""For the largest sites in the timeline by site, and beside them in the table of sites."""

OTHER_SITES = Colour("s-other", "#767d87", "#8b929c")

INK = Colour("ink", "#1b1f24", "#e7e9ec")
QUIET = Colour("quiet", "#57606a", "#a5adb6")
FAINT = Colour("faint", "#e3e6e9", "#343a41")
BAND = Colour("band", "#f1f3f5", "#20252b")
PAPER = Colour("paper", "#fffffe", "#15181c")
RESERVED = Colour("reserved", "#1c2b3a", "#f3f5f7")
ACTIVE = Colour("active", "#4f6172", "#b9c3cd")
ALARM = Colour("alarm", "#b3123f", "#ff7a98")
KEPT = Colour("kept", "#8f1d55", "#d9639b")
"""What is kept alive though its pass or call is over: holders, graphs and lists of earlier passes."""
FREED = Colour("freed", "#d3d8de", "#39414a")
"""What was given back before the instant that the report is about."""
FREE_INSIDE = Colour("e-inactive", "#f2dfa8", "#6e5c20")
"""Free inside PyTorch's segments."""
LIMIT = Colour("limit", "#7a1fa2", "#cf9be6")
BAR = Colour("bar", "#3f6e9a", "#79a9d6")
SOFT_BAR = Colour("bar-soft", "#b9cde0", "#3d566e")

ALL = (
    *CATEGORY_COLOURS.values(), *SITE_COLOURS, OTHER_SITES, INK, QUIET, FAINT, BAND, PAPER, RESERVED, ACTIVE, ALARM,
    KEPT, FREED, FREE_INSIDE, LIMIT, BAR, SOFT_BAR,
)  # fmt: skip


def css_variables() -> tuple[str, str]:
    """The declarations of all variables, for light and for dark pages."""
    return (
        "".join(f"--{colour.variable}:{colour.light};" for colour in ALL),
        "".join(f"--{colour.variable}:{colour.dark};" for colour in ALL),
    )
