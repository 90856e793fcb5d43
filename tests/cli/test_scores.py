"""Tables and figures of scores."""

from __future__ import annotations

import io
from collections.abc import Callable

import pandas as pd
import pytest
from rich.console import Console

from braindecode_pars import plotting
from braindecode_pars._common.tables import SCORES
from braindecode_pars.cli.evaluation_report import save_figure, show_differences, show_scores


def scores_of(protocol: str, rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame([(protocol, *row) for row in rows], columns=SCORES)


def shown(show: Callable[..., None], *arguments) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    show(console, *arguments)
    return console.export_text()


COMPARED = [
    ("sleep", method, subject, 5, 0, "kappa", value)
    for method, values in {"A": (0.1, 0.2, 0.3), "B": (0.2, 0.4, 0.6)}.items()
    for subject, value in zip((1, 2, 3), values, strict=True)
]


def test_held_out_subjects_are_averaged():
    table = shown(show_scores, scores_of("leave_one_subject_out", COMPARED), "subjects")
    assert "mean ± SD over 3 held-out subjects" in table
    assert "0.200 ± 0.100" in table
    assert "0.400 ± 0.200" in table


def test_a_comparison_describes_differences():
    message = shown(show_differences, scores_of("compare", COMPARED))
    assert "no difference could have been significant" in " ".join(message.split())


def test_fixed_test_subjects_are_averaged_over_seeds():
    rows = [
        ("sleep", "A", subject, n, seed, "kappa", n / 100 + seed / 10)
        for n in (10, 20)
        for seed in (0, 1)
        for subject in ("s1", "all")
    ]
    table = shown(show_scores, scores_of("label_efficiency", rows), "seeds")
    assert "training subjects" in table
    assert "over 2 seeds, over all test windows" in table
    assert "0.150 ± 0.071" in table
    assert "0.250 ± 0.071" in table


@pytest.mark.parametrize("draw", [plotting.paired_bars, plotting.transfer])
def test_the_figure_is_named_after_the_metric(draw, tmp_path):
    file = save_figure(scores_of("compare", COMPARED), tmp_path, draw)
    assert file == tmp_path / "kappa.png"
    assert file.read_bytes().startswith(b"\x89PNG")
