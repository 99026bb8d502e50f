"""Options: from code, then from variables, then defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomscope.recording import saying
from oomscope.recording.options import build


def test_code_comes_before_variables_and_variables_before_defaults():
    options = build({"max_entries": 5}, {"OOMSCOPE_MAX_ENTRIES": "6", "OOMSCOPE_MAX_DUMPS": "7"})
    assert (options.max_entries, options.max_dumps, options.stacks) == (5, 7, "python")


def test_every_kind_of_variable():
    options = build(
        {},
        {
            "OOMSCOPE_OUTPUT_DIR": "/dumps",
            "OOMSCOPE_ON": "oom, exit",
            "OOMSCOPE_DEVICES": "0,2",
            "OOMSCOPE_RANKS": "",
            "OOMSCOPE_CONTEXT": "none",
            "OOMSCOPE_MAX_ENTRIES": "1_000",
            "OOMSCOPE_REPORT": "yes",
            "OOMSCOPE_COMPRESS": "0",
            "OOMSCOPE_METADATA": '{"run": 3}',
            "OOMSCOPE_SIGNAL": "SIGUSR2",
        },
    )
    assert options.output_dir == Path("/dumps")
    assert options.on == {"oom", "exit"}
    assert options.devices == {0, 2}
    assert options.ranks is None
    assert options.context is None
    assert options.max_entries == 1000
    assert options.report is True
    assert options.compress is False
    assert options.metadata == {"run": 3}
    assert options.signal == "SIGUSR2"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OOMSCOPE_MAX_ENTRIES", "many"),
        ("OOMSCOPE_ON", "error"),
        ("OOMSCOPE_REPORT", "maybe"),
        ("OOMSCOPE_STACKS", "c"),
    ],
)
def test_a_bad_variable_is_said_and_stops_nothing(variable, value, capfd):
    saying.forget()
    assert build({}, {variable: value}) == build({}, {})
    assert f"{variable}={value!r} is not understood" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"entries": 5}, TypeError, "unknown option 'entries'"),
        ({"on": "error"}, ValueError, "on takes 'oom', 'exception', 'exit'"),
        ({"stacks": "c++"}, ValueError, "stacks is one of 'python', 'all'"),
        ({"max_entries": 0}, ValueError, "at least 1"),
        ({"filename": "{rank_id}.pickle"}, ValueError, "filename is a pattern of"),
    ],
)
def test_a_bad_option_in_code_is_an_error_where_it_is_written(given, error, words):
    with pytest.raises(error, match=words):
        build(given, {})


def test_the_launchers_options_are_the_recorders():
    """`oomscope run` may not import the recorder, so it repeats the names."""
    from dataclasses import fields

    from oomscope.commands.run import command, variables
    from oomscope.recording.options import Options

    names = {parameter.name.removesuffix("_name") for parameter in command.params} - {"is_module", "program"}
    assert names == {item.name for item in fields(Options)}
    given = {"on": ("oom", "exit"), "max_dumps": 2, "report": False, "signal_name": "none", "ranks": None}
    options = build({}, variables(given))
    assert (options.on, options.max_dumps, options.report, options.signal) == ({"oom", "exit"}, 2, False, None)
