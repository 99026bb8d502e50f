"""Drivers: each is a file with its words, every block has one, and they never contradict the table of categories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import oomscope
from oomscope.analysis import analyze
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.labels import drivers, kinds
from oomscope.analysis.labels.drivers import (
    DRIVER_MODULES,
    accumulated_tensors,
    attention_scores,
    duplicate_model,
    kv_cache,
    logits,
    retained_graph,
)
from oomscope.analysis.records import CATEGORIES
from oomscope.wording.drivers import DRIVERS
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import (
    BACKWARD,
    BATCH,
    CALL,
    LOADING,
    LOSS,
    MAIN,
    MIB,
    STATE,
    TORCH,
    Program,
    Training,
    forward,
)
from tests.builders import frame
from tests.samples import SAMPLES, sample_findings
from tests.shared import captures, needs_shared, public, recorded, shared_snapshot

FOLDER = Path(drivers.__file__).parent
SHARED_FILES = {"__init__", "driver", "live_blocks", "calls"}
CAPTURES = sorted((Path(__file__).parents[1] / "captures").glob("*.pickle.xz"))


def test_every_file_is_a_driver_of_its_name_and_is_asked():
    files = {path.stem for path in FOLDER.glob("*.py")} - SHARED_FILES
    assert files == set(DRIVER_MODULES)
    for slug, module in DRIVER_MODULES.items():
        assert slug == module.SLUG
        assert Path(str(module.__file__)).stem == slug  # type: ignore[attr-defined]


def test_every_driver_has_its_words_and_every_word_a_driver():
    assert set(DRIVERS) == set(DRIVER_MODULES)
    for words in DRIVERS.values():
        assert words.label
        assert words.phrase
        assert not words.phrase[0].isupper()


@pytest.mark.parametrize("slug", DRIVER_MODULES)
def test_a_driver_says_what_it_is_made_of_and_what_tells_it(slug: str):
    module = DRIVER_MODULES[slug]
    assert module.CATEGORIES
    assert set(module.CATEGORIES) <= set(range(len(CATEGORIES)))
    assert module.BECOMES is None or module.BECOMES in module.CATEGORIES
    assert module.EVIDENCE
    assert module.LOOKS_LIKE


def test_every_category_has_a_driver():
    covered = {category for module in DRIVER_MODULES.values() for category in module.CATEGORIES}
    assert covered == set(range(len(CATEGORIES)))


def agree(device: DeviceFindings) -> None:
    """The tables of one instant are about the same bytes: categories, drivers, sites."""
    found = drivers.find_drivers(device.study, device.at_entry, device.growth)
    assert sum(driver.bytes for driver in found) == device.at.allocated
    by_category: Counter[str] = Counter()
    for driver in found:
        module = DRIVER_MODULES[driver.slug]
        assert sum(driver.categories.values()) == driver.bytes
        allowed = module.CATEGORIES if module.BECOMES is None else (module.BECOMES,)
        assert {CATEGORIES.index(name) for name in driver.categories} <= set(allowed)
        by_category.update(driver.categories)
    assert dict(by_category) == {name: count for name, count in device.categories.items() if count}
    live = device.history.lifetimes.allocated_at(device.at_entry)
    for number, name in enumerate(CATEGORIES):
        mine = live & (device.category_of == number)
        assert int(device.history.size[mine].sum()) == device.categories.get(name, 0)


@pytest.mark.parametrize("name", SAMPLES)
def test_drivers_and_categories_of_the_samples_agree(name: str):
    for device in sample_findings(name).devices:
        agree(device)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_drivers_and_categories_of_captures_agree(path: Path):
    for device in analyze(oomscope.load(path), whatif=False).devices:
        agree(device)
        if device.oom is not None and device.oom.entry == device.at_entry:
            named = {driver.slug: driver.bytes for driver in device.oom.verdict.drivers}
            found = drivers.find_drivers(device.study, device.at_entry, device.growth)
            assert named == {driver.slug: driver.bytes for driver in found}


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *public(), *recorded()])
def test_drivers_and_categories_of_real_captures_agree(name: str):
    for device in analyze(shared_snapshot(name), whatif=False).devices:
        agree(device)


@pytest.mark.parametrize("name", ["kv_cat", "kv_prealloc"])
def test_a_key_value_cache_is_no_less_in_the_table_of_categories(name: str):
    """The same bytes were buffers of 9.5 GiB in one table and a key-value cache of 9.8 GiB in the next."""
    path = next(path for path in CAPTURES if path.name.startswith(name))
    device = analyze(oomscope.load(path), whatif=False).devices[0]
    assert device.oom is not None
    cache = next(driver for driver in device.oom.verdict.drivers if driver.slug == "kv_cache")
    assert cache.categories == {"buffer": cache.bytes}
    assert device.categories["buffer"] >= cache.bytes


def slugs(diagnosis: Diagnosis) -> dict[str, int]:
    return {driver.slug: driver.bytes for driver in diagnosis.drivers()}


# Edges of the thresholds.


def reserving(count: int, size: int, others: int) -> Program:
    """A model, `count` equal blocks made before any forward, and then inference."""
    program = Program()
    program.alloc(others, LOADING)
    for _ in range(count):
        program.alloc(size, BATCH)
    for _ in range(4):
        batch = program.alloc(MIB, (frame("batch", 70, "/workspace/train/train.py"), MAIN))
        program.free(program.alloc(MIB, forward(31)), program.alloc(MIB, forward(33)), batch)
    return program


@pytest.mark.parametrize(
    ("file", "function", "found"),
    [
        ("/venv/lib/python3.12/site-packages/transformers/generation/continuous_batching/cache.py", "__init__", True),
        ("/venv/lib/python3.12/site-packages/sglang/srt/mem_cache/memory_pool.py", "_create_buffers", True),
        ("/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors", True),
        ("/venv/lib/python3.12/site-packages/datasets/cache.py", "__init__", False),
    ],
)
def test_one_tensor_that_an_engine_pages_is_its_cache(file: str, function: str, found: bool):
    program = Program()
    program.alloc(4 * MIB, LOADING)
    program.alloc(64 * MIB, (frame(function, 210, file), MAIN))
    for _ in range(4):
        program.free(program.alloc(MIB, forward(31)), program.alloc(MIB, forward(33)))
    assert slugs(diagnose(program.history()[0])).get("kv_cache") == (64 * MIB if found else None)


@pytest.mark.parametrize("fewer", [0, 1])
def test_a_reserved_cache_has_blocks_for_two_layers(fewer: int):
    program = reserving(kv_cache.LEAST_CACHES - fewer, 8 * MIB, 4 * MIB)
    assert ("kv_cache" in slugs(diagnose(program.history()[0]))) == (fewer == 0)


@pytest.mark.parametrize(("share", "found"), [(0.09, False), (0.11, True)])
def test_a_reserved_cache_is_a_good_part_of_what_is_live(share: float, found: bool):
    size = 2 * MIB
    cache = kv_cache.LEAST_CACHES * size
    program = reserving(kv_cache.LEAST_CACHES, size, int(cache / share - cache) // 512 * 512)
    assert pytest.approx(0.1) == kv_cache.LEAST_SHARE
    assert ("kv_cache" in slugs(diagnose(program.history()[0]))) == found


BMM = "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)"
SOFTMAX = "at::_ops::_softmax::call(at::Tensor const&, long, bool)"
RELU = "at::_ops::relu::call(at::Tensor const&)"
LOG_SOFTMAX = "at::_ops::_log_softmax::call(at::Tensor const&, long, bool)"


def attending(
    scores: list[int], line: int = 60, *, linear: int = 4 * MIB, name: str = "forward", operator: str = ""
) -> Program:
    """A function with one linear layer and blocks of its own, which a C++ `operator` made if that was recorded."""
    program = Program()
    program.alloc(MIB, LOADING)
    place = (frame(name, line, "/workspace/train/block.py"), CALL, MAIN)
    inner = (frame("forward", 134, f"{TORCH}/nn/modules/linear.py"), CALL, *place)
    program.alloc(linear, inner)
    for size in scores:
        program.alloc(size, (frame(operator, 0, "??"), *place) if operator else place)
    return program


@pytest.mark.parametrize(
    ("scores", "name", "operator", "found"),
    [
        ([int(attention_scores.MUCH_LARGER * 4 * MIB)], "forward", SOFTMAX, True),
        ([int(attention_scores.MUCH_LARGER * 4 * MIB) - 512], "forward", SOFTMAX, False),
        ([int(attention_scores.LARGER * 4 * MIB)] * 2, "forward", BMM, True),
        ([int(attention_scores.LARGER * 4 * MIB) - 512] * 2, "forward", BMM, False),
        ([int(attention_scores.LARGER * 4 * MIB)], "attention", "", True),
        ([int(attention_scores.LARGER * 4 * MIB)], "forward", BMM, False),
    ],
)
def test_scores_are_larger_than_the_linear_layers_of_their_call(scores, name: str, operator: str, found: bool):
    program = attending(scores, name=name, operator=operator)
    assert ("attention_scores" in slugs(diagnose(program.history()[0]))) == found


@pytest.mark.parametrize("operator", ["", RELU, LOG_SOFTMAX])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_size_alone_makes_no_scores(operator: str, count: int):
    """The messages along the edges of a graph are far larger than what its linear layers make, and no attention."""
    program = attending([int(2 * attention_scores.MUCH_LARGER * 4 * MIB)] * count, operator=operator)
    assert "attention_scores" not in slugs(diagnose(program.history()[0]))


@pytest.mark.parametrize(
    ("size", "found"), [(attention_scores.LEAST_BYTES, True), (attention_scores.LEAST_BYTES - 512, False)]
)
def test_small_scores_are_no_driver(size: int, found: bool):
    program = attending([size] * 2, linear=MIB // 8, operator=SOFTMAX)
    assert ("attention_scores" in slugs(diagnose(program.history()[0]))) == found


def losing(size: int) -> Program:
    """A loss, and a block of twice its size from a line of the forward."""
    program = Program()
    program.alloc(MIB, LOADING)
    program.alloc(2 * size, forward(90))
    program.alloc(size, (frame("cross_entropy", 3400, f"{TORCH}/nn/functional.py"), *LOSS))
    return program


@pytest.mark.parametrize(("size", "found"), [(logits.LEAST_BYTES, True), (logits.LEAST_BYTES - 512, False)])
def test_others_as_large_as_the_loss_are_logits_from_a_mebibyte_on(size: int, found: bool):
    assert slugs(diagnose(losing(size).history()[0]))["logits"] == (3 * size if found else size)


def twice(sizes: tuple[int, ...], again: tuple[int, ...]) -> Program:
    """A model, and another that a second line made."""
    program = Program()
    for size in sizes:
        program.alloc(size, LOADING)
    other = (*LOADING[:4], frame("make_reference", 12, "/workspace/train/train.py"), MAIN)
    for size in again:
        program.alloc(size, other)
    return program


SIZES = (10 * MIB, 5 * MIB, 3 * MIB, 2 * MIB)


@pytest.mark.parametrize(
    ("again", "found"),
    [
        (SIZES, True),
        (SIZES[: duplicate_model.LEAST_TENSORS - 1], False),
        ((*SIZES, 2 * MIB), True),  # nine tenths of it come again
        ((*SIZES, 3 * MIB), False),
        ((2 * MIB,) * 4, False),
    ],
)
def test_a_copy_has_nearly_all_sizes_of_the_model_before_it(again: tuple[int, ...], found: bool):
    assert ("duplicate_model" in slugs(diagnose(twice(SIZES, again).history()[0]))) == found


@pytest.mark.parametrize(("more", "found"), [(20 * MIB, True), (21 * MIB, False)])
def test_what_repeats_less_than_half_of_a_model_is_a_part_of_one(more: int, found: bool):
    program = twice((*SIZES, more), SIZES)
    assert pytest.approx(0.5) == duplicate_model.LEAST_OF_MODEL
    assert ("duplicate_model" in slugs(diagnose(program.history()[0]))) == found


@pytest.mark.parametrize("trained", [4, 5])
def test_one_line_twice_is_a_copy_where_half_of_it_is_trained(trained: int):
    program = twice((*SIZES, *SIZES), ())
    for size in (*SIZES, *SIZES)[:trained]:
        program.alloc(size, STATE)
    found = "duplicate_model" in slugs(diagnose(program.history()[0]))
    assert found == (trained <= duplicate_model.MOST_TRAINED * 2 * len(SIZES))


@pytest.mark.parametrize("lines", [retained_graph.LEAST_STACKS - 1, retained_graph.LEAST_STACKS])
def test_a_graph_grows_at_several_lines(lines: int):
    program = Training()
    for _ in range(6):
        batch = program.alloc(MIB, BATCH)
        for line in range(lines):
            program.alloc(4 * MIB, forward(31 + line))
        gradients = [program.alloc(size, BACKWARD) for size in reversed(program.SIZES)]
        program.optimize()
        program.free(*gradients, batch)
    found = slugs(diagnose(program.history()[0]))
    assert ("retained_graph" in found) == (lines == retained_graph.LEAST_STACKS)
    assert ("accumulated_tensors" in found) == (lines < retained_graph.LEAST_STACKS)


@pytest.mark.parametrize(("kept", "slug"), [(3, "accumulated_tensors"), (4, "retained_graph")])
def test_a_graph_keeps_much_of_what_a_pass_makes(kept: int, slug: str):
    """From three lines and more; of twelve blocks a pass, three are a quarter, four a third."""
    program = Training()
    for _ in range(6):
        blocks = [program.alloc(4 * MIB, forward(31 + line)) for line in range(12)]
        gradients = [program.alloc(size, BACKWARD) for size in reversed(program.SIZES)]
        program.free(*blocks[kept:])
        program.optimize()
        program.free(*gradients)
    assert pytest.approx(0.3) == retained_graph.GRAPH_SHARE
    assert diagnose(program.history()[0]).drivers()[0].slug == slug


class Followed(Program):
    """A model that is trained for some steps, and then another one."""

    def __init__(self, *, drops: bool, goes_on: bool) -> None:
        super().__init__()
        self.first = self.train(LOADING, 3, drops=drops)
        self.second = self.train((*LOADING[:4], frame("make_other", 50, "/w/t.py"), MAIN), int(goes_on), drops=drops)

    def train(self, making, steps: int, *, drops: bool) -> list[int]:
        model = [self.alloc(size, making) for size in (SIZES if making is LOADING else SIZES[::-1])]
        gradients: list[int] = []
        states: list[int] = []
        for _ in range(steps):
            activations = [self.alloc(4 * MIB, forward(31))]
            if drops:
                self.free(*gradients)
            if drops or not gradients:
                gradients = [self.alloc(size, BACKWARD) for size in SIZES]
            self.free(*activations)
            if not states:
                states = [self.alloc(size, STATE) for size in SIZES for _ in range(2)]
            self.free(self.alloc(MIB, (frame("_multi_tensor_adam", 791, f"{TORCH}/optim/adam.py"), *STATE[1:])))
        return [*model, *gradients, *states]


@pytest.mark.parametrize(("drops", "goes_on"), [(True, True), (True, False), (False, True)])
def test_a_model_that_another_has_followed_is_a_second_one_with_all_that_belongs_to_it(drops: bool, goes_on: bool):
    """Only where a step drops its gradients do old ones tell, and only where the other model is trained by now."""
    found = slugs(diagnose(Followed(drops=drops, goes_on=goes_on).history()[0]))
    assert (found.get("duplicate_model", 0) == 4 * sum(SIZES)) == (drops and goes_on)


@pytest.mark.parametrize(("framed", "is_line"), [(1, False), (2, True)])
def test_the_site_of_a_driver_is_a_line_unless_next_to_nothing_has_frames(framed: int, is_line: bool):
    program = Training()
    program.free(*program.forward())
    hook = (frame("hook", 7, "/workspace/train/hook.py"), frame("backward", 9, f"{TORCH}/autograd/__init__.py"))
    program.alloc(framed * MIB, hook)
    program.alloc(4 * MIB, BACKWARD)
    site = next(driver for driver in diagnose(program.history()[0]).drivers() if driver.slug == "activations").site
    assert (site is not None) == is_line
    assert pytest.approx(0.25) == drivers.LEAST_FRAMED


def test_categories_of_an_instant_leave_the_others_of_their_stacks_in_one_place():
    """A block that was named by growth takes the earlier ones of its line along."""
    path = next(path for path in CAPTURES if path.name.startswith("kv_cat"))
    study = diagnose(oomscope.load(path)).study
    device = analyze(oomscope.load(path), whatif=False).devices[0]
    changed = np.flatnonzero(device.category_of != study.categories)
    assert len(changed)
    assert set(device.category_of[changed].tolist()) == {kinds.BUFFER}
    assert accumulated_tensors.BECOMES is None
