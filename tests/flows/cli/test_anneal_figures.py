"""The figures of shadows for people: sums that can be checked by eye, cards that begin where texts go on."""

from flows.cli.anneal_figures import card_lines, cumulative_lines


def test_what_a_domain_gains_at_the_end_is_the_sum_of_what_stands_before_it() -> None:
    learned = {"before_own_stage": -0.01, "gain_own_stage": 0.05, "forgotten": 0.02, "gain_end": 0.02}
    result = {"order": ["novel"], "drift_by_stage": [0.0, 0.003], "cumulative": {"novel": learned}}
    head, row, said = cumulative_lines(result)
    assert row.split() == ["novel", "-0.0100", "+0.0500", "+0.0200", "+0.0200", "+0.0030"]
    assert head.split("  ")[-1] == "drift then"
    assert "before its turn" in said


def test_a_card_shows_how_a_beginning_ends_and_how_its_continuations_start() -> None:
    card = {"after": "d " * 200, "before": "c", "beginning": "first " + "b " * 200, "truth": "t\n " * 200}
    shown = dict(card_lines(card))
    assert list(shown) == ["beginning", "truth", "before", "after"]
    assert shown["beginning"].startswith("... ")
    assert "first" not in shown["beginning"]
    assert shown["truth"].startswith("t t")
    assert shown["after"].endswith(" ...")
    assert shown["before"] == "c"
