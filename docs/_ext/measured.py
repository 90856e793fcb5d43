"""The directive ``measured``: stored scores as mean and spread, and where they come from.

The stored tables are tidy scores as the package's protocols write them. Lines at the top that begin
with ``#`` say which command made them, when, and on what machine.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from braindecode_pars.evaluation import paired_tests, summarize
from braindecode_pars.evaluation.paired_tests import holm

__all__ = ["Measured", "against", "provenance", "read_scores", "table"]


def read_scores(files: list[Path], own_people: bool = False) -> pd.DataFrame:
    """Stored scores of some files; with ``own_people`` a subject is another one in each seed."""
    scores = pd.concat(
        [pd.read_csv(file, comment="#", dtype={"subject": str}) for file in files],
        ignore_index=True,
    )
    if own_people:
        scores["subject"] = scores["seed"].astype(str) + "-" + scores["subject"]
    return scores


def provenance(files: list[Path]) -> list[str]:
    """What the files say of themselves, each line once: commands first, then when and where."""
    said = [
        line.removeprefix("#").strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    return sorted(dict.fromkeys(said), key=lambda line: line[:1].isdigit())


def table(scores: pd.DataFrame, over: str) -> pd.DataFrame:
    """A row a method; a column a metric, or a number of training subjects where there are some."""
    summary = summarize(scores, over=over)
    summary["score"] = [
        f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(summary["mean"], summary["sd"], strict=True)
    ]
    if over == "seeds":
        summary = summary[summary["metric"] == summary["metric"].iloc[0]]
        columns = "n_train_subjects"
    else:
        columns = "metric"
    wide = summary.pivot_table(
        index="method", columns=columns, values="score", aggfunc="first", sort=False
    )
    wide.columns = [_title(column, columns) for column in wide.columns]
    if over == "subjects" and scores["seed"].nunique() > 1:
        first = scores["metric"].iloc[0]
        means = scores[scores["metric"] == first].groupby(["method", "seed"])["value"].mean()
        wide[f"{first} by seed"] = [
            ", ".join(f"{value:.3f}" for value in means[method]) for method in wide.index
        ]
    return wide


def against(scores: pd.DataFrame, other: str) -> pd.Series:
    """How far each method is from another in the first metric, p after Holm over these pairs.

    Of two methods with different seeds, those that both have are compared.
    """
    metric = scores["metric"].iloc[0]
    seeds = scores.groupby("method")["seed"].agg(set)
    tests = {}
    for method in dict.fromkeys(scores["method"]):
        if method != other:
            common = scores["seed"].isin(seeds[method] & seeds[other])
            pair = scores[common & scores["method"].isin([method, other])]
            tests[method] = paired_tests(pair, metric).iloc[0]
    corrected = holm([test["p"] for test in tests.values()])
    return pd.Series(
        {
            method: _difference(test, 1 if test["method_a"] == method else -1, p)
            for (method, test), p in zip(tests.items(), corrected, strict=True)
        }
    )


def _difference(test: pd.Series, sign: int, p: float) -> str:
    wins = test["wins"] if sign == 1 else test["n_subjects"] - test["wins"]
    return (
        f"{sign * test['mean_difference']:+.3f} ± {test['sd_difference']:.3f}, ahead in {wins} of "
        f"{test['n_subjects']}, p = {p:.2g}"
    )


def _title(column: Any, kind: str) -> str:
    return str(column).replace("_", " ") if kind == "metric" else f"{column} people"


class Measured(SphinxDirective):
    """``.. measured:: FILES``, a glob pattern below ``docs/measured``."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012  as docutils has it
        "own-people": directives.flag,
        "against": directives.unchanged,
        "over": lambda text: directives.choice(text, ("subjects", "seeds")),
    }

    def run(self) -> list[nodes.Node]:
        files = sorted((Path(self.env.srcdir) / "measured").glob(self.arguments[0]))
        if not files:
            raise self.error(f"No stored table is named {self.arguments[0]}.")
        for file in files:
            self.env.note_dependency(str(file))
        over = self.options.get("over", "subjects")
        scores = read_scores(files, "own-people" in self.options)
        return self.parse_text_to_nodes("\n".join(self._lines(scores, files, over)))

    def _lines(self, scores: pd.DataFrame, files: list[Path], over: str) -> list[str]:
        rows = table(scores, over)
        if other := self.options.get("against"):
            rows[f"against {other}"] = against(scores, other)
            rows = rows.fillna("")
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in [["method", *rows.columns], *rows.reset_index().to_numpy().tolist()]:
            cells = [re.sub(r" (±|=) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", x) for x in row]
            lines += [f"   {'* ' if i == 0 else '  '}- {cell}" for i, cell in enumerate(cells)]
        n = summarize(scores, over=over)["n"].max()
        unit = "people left out" if over == "subjects" else "seeds, of the score over all windows"
        lines += ["", f"Mean ± SD over {n} {unit}.", ""]
        return [*lines, *(f"| ``{line}``" for line in provenance(files)), ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
