"""What is told first: what removes a cause, before what only delays it."""

from __future__ import annotations

from tests.verdict.known import found, programs


def test_where_each_pass_makes_an_object_keep_more_no_cap_is_high_enough() -> None:
    oom = found(programs()["pbt_population"].path, with_key=True).oom
    assert oom is not None
    slugs = [one.slug.partition(".")[0] for one in oom.verdict.advice if not one.refuted]
    assert slugs.index("bound_what_is_kept") < slugs.index("raise_cap")
    assert slugs[-1] == "raise_cap"
    assert not {"smaller_batch", "checkpoint_activations"} & set(slugs)
