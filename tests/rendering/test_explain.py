"""What ``oomscope explain`` prints: short, each thing once, the commands exact."""

from __future__ import annotations

import json

import jsonschema
import pytest

from oomscope.messages import FIGURES, KINDS
from oomscope.rendering.explain import SCHEMA, to_json, to_markdown, to_text
from oomscope.wording.messages import KIND_LABELS
from tests.messages.comparing import read
from tests.messages.public import SETS, messages
from tests.messages.test_logs import MESSAGE

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
PUBLIC = [one["text"] for name in SETS for one in messages(name)]


def test_the_schema_is_one_and_knows_every_kind_and_figure():
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)
    properties = VALIDATOR.schema["$defs"]["message"]["properties"]
    assert tuple(properties["kind"]["enum"]) == KINDS
    assert set(FIGURES) <= set(properties)
    assert set(KIND_LABELS) == set(KINDS)


def test_every_public_message_keeps_to_the_schema():
    VALIDATOR.validate(json.loads(to_json(read("\n\n".join(PUBLIC)))))


@pytest.mark.parametrize("text", PUBLIC, ids=range(len(PUBLIC)))
def test_one_message_is_told_in_few_lines_of_eighty_columns(text: str):
    log = read(text)
    out = to_text(log)
    assert len(out.splitlines()) <= 16 * max(len(log.messages), 1)
    assert all(len(line) <= 80 or "Next" in line for line in out.splitlines())
    assert "{" not in out
    assert "None" not in out


def test_what_is_not_printed_is_null_and_never_zero():
    (message,) = json.loads(to_json(read("RuntimeError: CUDA error: out of memory")))["messages"]
    assert all(message[name] is None for name in FIGURES)
    assert message["off_by"] == {}
    assert message["rank"] is None
    (message,) = json.loads(to_json(read(MESSAGE.replace("1.75 GiB", "0 bytes"))))["messages"]
    assert message["free"] == 0
    assert "free" not in message["off_by"]


def test_ranks_that_say_the_same_are_one_paragraph_with_the_first_of_them_first():
    log = read("".join(f"[rank{rank}]: {MESSAGE}\n" for rank in (5, 0, 3)))
    out = " ".join(to_text(log).split())
    assert out.startswith("3 messages about memory in 3 lines, repeats not counted; the first in line 1, from rank 5.")
    assert "3 such messages, lines 1 to 3, ranks in order: 5, 0, 3" in out
    assert out.count("Proven") == 1
    assert to_markdown(log).count("- Proven") <= 3


def test_the_command_names_the_program_of_the_traceback():
    above = '[rank1]:   File "/home/me/fine tune.py", line 3, in <module>\n'
    unsafe = read(f"{above}[rank1]: {MESSAGE}")
    assert "oomscope run your_script.py" in to_text(unsafe)
    safe = read(f"{above.replace('fine tune', 'finetune')}[rank1]: {MESSAGE}")
    (message,) = json.loads(to_json(safe))["messages"]
    assert message["next"] == ["torchrun --nproc-per-node=gpu --no-python oomscope run /home/me/finetune.py"]
    alone = read(
        '  File "/x/site-packages/y/__main__.py", line 1, in <module>\n  File "train.py", line 3, in <module>\n'
        + MESSAGE
    )
    assert "oomscope run train.py" in to_text(alone)


_OF_COMFYUI = "--disable-cuda-malloc"
"""An option of the program that is run."""


def test_commands_are_those_of_oomscope():
    """Every command that starts with oomscope is one, with options that it has."""
    import click

    from oomscope.commands import cli

    for text in PUBLIC:
        for message in json.loads(to_json(read(text)))["messages"]:
            for command in message["next"]:
                if "oomscope " in command:
                    name, *rest = command.partition("oomscope ")[2].split()
                    found = cli.get_command(click.Context(cli), name)
                    assert found is not None
                    known = {option for parameter in found.params for option in parameter.opts} | {_OF_COMFYUI}
                    assert {word for word in rest if word.startswith("--")} <= known


def test_of_messages_that_prove_the_same_of_other_sizes_the_least_and_the_largest_are_told():
    line = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: {}, Hardware limit: 65536."
    log = read("".join(f"FAILED test_op[{size}] - {line.format(size)}\n" for size in (73728, 81920)))
    assert "(2 such messages of 72.00 KiB to 80.00 KiB, lines 1 to 2)" in " ".join(to_text(log).split())
