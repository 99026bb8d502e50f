"""A cause, a remedy or a driver is one file and its words: without either, a test fails here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from oomscope.analysis.labels import drivers
from oomscope.analysis.labels.drivers import DRIVER_MODULES
from oomscope.analysis.records import CAUSES
from oomscope.analysis.remedies import REMEDY_MODULES
from oomscope.analysis.verdict import causes
from oomscope.analysis.verdict.causes import CAUSE_MODULES
from oomscope.wording.causes import CAUSES as CAUSE_SENTENCES
from oomscope.wording.drivers import DRIVERS
from oomscope.wording.evidence import CAUSE_NOUNS, EVIDENCE
from oomscope.wording.labels import CAUSE_LABELS
from oomscope.wording.remedies import REMEDIES
from oomscope.wording.remedy_words import SOURCES

WITHOUT_COUNTERFACTUAL = {"oversized_request", "capacity"}
"""Of these nothing can be taken away, so there is no "without"."""
SUFFIXED = re.compile(r'f"\{SLUG\}\.(\w+)"')
ALONE = re.compile(r"(?:Advice|shrink)\((?:circumstances, )?SLUG,")
REFUTED = re.compile(r'"(refuted\.[\w.]+)"')


def slugs_of_files(package: ModuleType) -> set[str]:
    """The slugs of all modules of `package` that have one, whether they are registered or not."""
    folder = Path(str(package.__file__)).parent
    names = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    found = [getattr(import_module(f"{package.__name__}.{name}"), "SLUG", None) for name in names]
    return {slug for slug in found if isinstance(slug, str)}


def remedies_package() -> ModuleType:
    return import_module("oomscope.analysis.remedies")


@pytest.mark.parametrize(
    ("package", "registered"),
    [(causes, CAUSE_MODULES), (remedies_package(), REMEDY_MODULES), (drivers, DRIVER_MODULES)],
    ids=["causes", "remedies", "drivers"],
)
def test_every_file_with_a_slug_is_registered(package: ModuleType, registered: Mapping[str, object]) -> None:
    assert slugs_of_files(package) == set(registered)


def test_a_driver_has_words() -> None:
    assert set(DRIVERS) == set(DRIVER_MODULES)


def test_the_causes_are_those_of_the_records_and_the_labels() -> None:
    assert tuple(CAUSE_MODULES) == CAUSES
    assert set(CAUSE_LABELS) == set(CAUSES)
    assert set(CAUSE_NOUNS) == set(CAUSES) - WITHOUT_COUNTERFACTUAL


@pytest.mark.parametrize("slug", CAUSES)
def test_a_cause_has_sentences_numbers_and_remedies_that_are_there(slug: str) -> None:
    module = CAUSE_MODULES[slug]
    assert any(code == f"causes.{slug}" or code.startswith(f"causes.{slug}.") for code in CAUSE_SENTENCES)
    assert set(module.DECIDING) <= set(EVIDENCE)
    assert set(module.REMEDIES) <= set(REMEDY_MODULES)
    assert module.REMEDIES


@pytest.mark.parametrize("slug", sorted(REMEDY_MODULES))
def test_a_remedy_has_words_and_a_cause_that_names_it(slug: str) -> None:
    path = Path(str(remedies_package().__file__)).parent / f"{slug}.py"
    text = path.read_text(encoding="utf-8")
    proposed = {f"{slug}.{suffix}" for suffix in SUFFIXED.findall(text)} | ({slug} if ALONE.search(text) else set())
    worded = {one for one in REMEDIES if one.partition(".")[0] == slug}
    assert worded
    assert proposed <= worded
    assert any(slug in module.REMEDIES for module in CAUSE_MODULES.values())


def test_what_is_refuted_has_words() -> None:
    text = (Path(str(remedies_package().__file__)).parent / "refuted.py").read_text(encoding="utf-8")
    assert set(REFUTED.findall(text)) == {slug for slug in REMEDIES if slug.startswith("refuted.")}


def test_the_words_of_a_remedy_are_those_of_one_that_is_there_and_cite_a_known_source() -> None:
    assert {slug.partition(".")[0] for slug in REMEDIES} == {*REMEDY_MODULES, "refuted"}
    assert {words.source for words in REMEDIES.values()} <= set(SOURCES)
