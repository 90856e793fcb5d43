"""The parts of the package, as the counts of its lines read them."""

from __future__ import annotations

from counts import BUDGETS, NO_PART, ROOT, lines_by_part, read_parts


def test_every_folder_and_file_of_the_package_has_a_part():
    parts = read_parts()
    assert set(parts.values()) == set(BUDGETS)
    chosen = dict(_common="core", baselines="evaluation", datasets="data", runs="scale")
    chosen |= dict(predictions="study", __main__="study")
    assert chosen.items() <= parts.items()
    assert NO_PART not in lines_by_part(ROOT / "braindecode_pars", parts)
