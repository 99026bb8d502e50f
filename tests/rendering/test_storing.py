"""The line that stores what an object keeps is named where it is known, and none where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Suspect
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.storing import keeps_error, name_of, store_line, stores_belonging
from oomscope.wording.page import stored_note
from tests.samples import sample

FILE = "/proj/job.py"
STANDS = Location(FILE, 1, "f")


def sources(*text: str, first: int = 1) -> Sources:
    told = {"filename": FILE, "line": first, "first": first, "text": list(text)}
    return Sources(replace(sample("train_ok"), context={"schema_version": 1, "sources": [told]}))


def suspect(holder: str, kind: str = "exception", at: Location | None = STANDS) -> Suspect:
    return Suspect(holder, kind, 1, 1.0, 1, at=at)


@pytest.mark.parametrize(
    ("holder", "text"),
    [
        ("f: errors", "errors.append(error)"),
        ("f: errors[0]", "errors += [error]"),
        ("f: problems[*]", "problems[size] = error"),
        ("job.py: last_error", "last_error = error"),
        ("job.py: job.last_error", "self.last_error = error"),
        ("job.py: job.last_error.__traceback__", "job.last_error: Exception = error"),
        ("f: loss", "loss, accuracy = loss_of(model(x), y)"),
        ("f: hidden", "output, hidden = model(x, hidden)"),
        ("f: seen", "seen.setdefault(size, []).append(error)"),
        ("f: metric.outputs", "self.outputs.append({'logits': logits})"),
        ("f: metric.outputs", "self.outputs, self.targets = [], [logits]"),
        ("f: metric.outputs", "self.targets, self.outputs = None, logits"),
    ],
)
def test_a_line_that_stores_into_the_name_is_found(holder: str, text: str):
    found = store_line(suspect(holder), sources("print(1)", f"    {text}  # kept", "return None"))
    assert found is not None
    assert (found.file, found.line) == (FILE, 2)


@pytest.mark.parametrize(
    ("holder", "text"),
    [
        ("f: errors", "f(errors, size=3)"),
        ("f: memory.frames", 'print(f"{memory.frames:,} frames", flush=True)'),
        ("f: errors", "errors = []"),
        ("f: errors", "errors: list = list()  # all of them"),
        ("job.py: job.last_error", "self.last_error = None"),
        ("f: errors", "print(errors, errors == [error])"),
        ("f: errors", "# errors.append(error)"),
        ("f: errors", "my_errors.append(error)"),
        ("f: errors", "self.errors.append(error)"),
        ("f: last", "print(size, job.run(last))"),
        ("f: x → g: y", "y.append(1)"),
        ("f: metric.outputs", "self.outputs, self.targets = [], []"),
        ("f: metric.outputs", "self.targets, self.outputs = None, list()  # all of them"),
    ],
)
def test_what_stores_nothing_is_no_such_line(holder: str, text: str):
    assert store_line(suspect(holder), sources("pass", text)) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (("results = []", "found = Result(name, error=exc)", "results.append(found)"), 2),
        (("found.error = exc", "results.append(found)"), 1),
        (("error: Exception | None = None", "results.append(Result(name, exc))"), 2),
        (("found.error = None", "results.append(found)"), 2),
        (("if found.error == exc:", "results[name] = found"), 2),
    ],
)
def test_an_exception_in_an_item_is_stored_where_its_attribute_gets_it(text: tuple[str, ...], line: int):
    found = store_line(suspect("f: results[3].error", kind="exception"), sources(*text))
    assert found is not None
    assert found.line == line


def test_a_tensor_in_an_item_is_stored_where_the_item_is():
    text = ("page = Page(rows=x)", "pages.append(page)")
    found = store_line(suspect("f: pages[3].rows", kind="attribute"), sources(*text))
    assert found is not None
    assert found.line == 2


def test_of_two_lines_none_is_named_unless_one_is_of_another_function():
    assert store_line(suspect("f: errors"), sources("errors.append(a)", "errors.append(b)")) is None
    text = ("def f():", "    errors.append(a)", "", "def g():", "    errors.append(b)")
    found = store_line(suspect("f: errors"), sources(*text))
    assert found == Location(FILE, 2, "f")


def test_of_several_lines_the_one_that_adds_is_named():
    text = ("self.average = mean", "self.average = 0.9 * self.average + 0.1 * mean")
    found = store_line(suspect("f: monitor.average", "graph"), sources(*text))
    assert found is not None
    assert found.line == 2
    assert store_line(suspect("f: seen"), sources("seen = [x]", "seen.append(x)")) == Location(FILE, 2, "f")


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("metrics.ap.update(x.sigmoid(), y)", True),
        ("metrics.update(x, y)", True),
        ("loss = metrics(x, y)", True),
        ("print(metrics.ap.compute())", False),
        ("other_metrics.update(x)", False),
        ("metrics = Metrics(device)", False),
    ],
)
def test_what_a_library_keeps_is_filled_where_it_is_called(text: str, is_it: bool):
    found = store_line(suspect("f: metrics.ap.target", "list"), sources("pass", text))
    assert (found is not None and found.line == 2) == is_it


def test_a_global_is_looked_for_in_the_file_that_its_name_begins_with():
    known = sources("errors.append(a)")
    assert store_line(suspect("job.py: errors", at=None), known) == Location(FILE, 1, "<module>")
    assert store_line(suspect("other.py: errors", at=None), known) is None
    assert store_line(suspect("f: errors", at=None), known) is None


def test_the_attribute_of_a_model_whose_function_is_not_told_is_looked_for_everywhere():
    text = sources("trial.value = objective(trial)", "self.trials.append(trial)")
    found = store_line(suspect("study.trials", "collection", at=None), text)
    assert found is not None
    assert found.line == 2
    assert store_line(suspect("trials", "collection", at=None), text) is None


def test_a_folder_that_the_reader_names_is_looked_at(tmp_path: Path):
    (tmp_path / "job.py").write_text("def f():\n    errors = []\n    errors.append(error)\n")
    found = store_line(suspect("f: errors"), Sources(None, tmp_path))
    assert found == Location(FILE, 3, "f")


def test_a_name_is_what_a_person_calls_it():
    assert name_of(suspect("largest_batch: failures[0]")) == "failures"
    assert name_of(suspect("job.py: job.last_error")) == "job.last_error"


def test_what_another_method_stores_is_told_where_the_recording_knows_that():
    filled = Location("/proj/server.py", 51, "start")
    one = replace(suspect("Server.serve: self.tasks"), stores=(filled,))
    assert store_line(one, sources("pass")) == filled
    assert store_line(one, sources("self.tasks.append(x)")) == Location(FILE, 1, "serve")  # in its own function
    assert store_line(replace(one, stores=(filled, STANDS)), sources("pass")) is None


def test_lines_of_a_method_that_the_dump_brought_too_are_that_methods():
    """Where the first line of the function that holds the object is not among them."""
    text = ("self.items, self.seen = [], []", "return None", "self.items.append(x)")
    filled = Location(FILE, 3, "update")
    one = replace(suspect("Runner.run: self.metric.items"), stores=(filled,))
    assert store_line(one, sources(*text)) == filled
    assert store_line(replace(one, stores=(filled, Location(FILE, 9, "put"))), sources(*text)) is None


def test_the_line_that_fills_a_dict_of_jobs_is_told_for_the_error_of_one():
    one = suspect("f: jobs{key}._exception")
    assert store_line(one, sources("jobs = {submit(x): x for x in y}")) == Location(FILE, 1, "f")
    assert keeps_error(one)
    assert not keeps_error(suspect("f: errors[0]"))
    assert stored_note(name_of(one), kept=True) == "kept in jobs, filled here"


@pytest.mark.parametrize(
    ("stores", "line"),
    [(("update",), 30), (("__init__",), 2), (("update", "reset"), None)],
)
def test_an_attribute_that_an_item_was_given_later_is_stored_by_its_method(
    stores: tuple[str, ...], line: int | None
) -> None:
    kept = suspect("f: averages['loss'].total", kind="graph")
    kept = replace(kept, stores=tuple(Location("job.py", 30 + at, name) for at, name in enumerate(stores)))
    found = store_line(kept, sources("def f():", "    averages = {'loss': Average()}", "    return averages"))
    assert (None if found is None else found.line) == line


def test_of_methods_that_store_it_the_constructor_is_not_the_one_that_fills_it() -> None:
    stores = tuple(Location(FILE, line, name) for line, name in ((5, "__init__"), (9, "update")))
    assert store_line(replace(suspect("f: meter.mean", "graph"), stores=stores), sources("")) == stores[1]
    assert store_line(replace(suspect("f: meter.mean", "graph"), stores=stores[:1]), sources("")) == stores[0]


def test_a_line_that_calls_the_function_stores_into_a_name_of_another_one() -> None:
    lines = ("    val_loss += loss", "    return val_loss", "def main():", "    val_loss = validate(model)")
    found = store_line(suspect("validate: val_loss", kind="graph"), sources(*lines))
    assert found is not None
    assert found.line == 1


@pytest.mark.parametrize(
    ("holder", "text", "line"),
    [
        ("search.best.optimizer", ("self.best = None", "self.best = fitted"), 2),
        ("search.best.optimizer", ("best.optimizer = AdamW(p)", "self.best = fitted"), 1),
        ("search.best.optimizer", ("self.best = a", "self.best = b"), None),
        ("model", ("model = Net()",), None),
        ("f: search.best", ("self.best = fitted",), None),
    ],
)
def test_a_model_is_stored_where_what_it_lies_in_is(holder: str, text: tuple[str, ...], line: int | None):
    found = stores_belonging(holder, sources(*text))
    assert (None if found is None else found.line) == line


def test_of_several_lines_of_methods_the_one_that_was_running_is_named():
    filled, other = Location("/proj/server.py", 51, "start"), Location("/proj/server.py", 80, "reset")
    one = replace(suspect("serve: agent.hidden", "graph"), stores=(filled, other), made_under=filled)
    assert store_line(one, sources("pass")) == filled
