"""The directive ``measured``: a table of stored scores, and the commands that made them."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from stored_scores import against, differences, provenance, read_scores, table

from braindecode_pars.evaluation import summarize

__all__ = ["Measured"]


class Measured(SphinxDirective):
    """Show stored scores: ``.. measured:: FILES``, a glob pattern below ``docs/measured``.

    Options: ``:own-subjects:`` when each seed has other subjects, ``:against: METHOD`` for paired
    differences, ``:over: subjects | seeds`` for the units of mean and SD. The differences are a
    column, or a table of their own where there are several numbers of training subjects.
    """

    required_arguments = 1
    option_spec = {  # noqa: RUF012  docutils reads a class attribute
        "own-subjects": directives.flag,
        "against": directives.unchanged,
        "over": lambda text: directives.choice(text, ("subjects", "seeds")),
    }

    def run(self) -> list[nodes.Node]:
        files = sorted((Path(self.env.srcdir) / "measured").glob(self.arguments[0]))
        if not files:
            raise self.error(f"No stored table is named {self.arguments[0]}.")
        for file in files:
            self.env.note_dependency(str(file))  # the page is rebuilt when a file changes
        over = self.options.get("over", "subjects")
        scores = read_scores(files, "own-subjects" in self.options)
        return self.parse_text_to_nodes("\n".join(self._lines(scores, files, over)))

    def _lines(self, scores: pd.DataFrame, files: list[Path], over: str) -> list[str]:
        # Means and spreads, and the differences to one method.
        rows = table(scores, over)
        other = self.options.get("against")
        several = scores["n_train_subjects"].nunique() > 1
        if other and not several:
            rows[f"against {other}"] = against(scores, other)
            rows = rows.fillna("")
        lines = _list_table(rows.reset_index())
        if other and several:
            lines += ["", f"The same against {other}:", ""]
            lines += _list_table(differences(scores, other))
        # Below the table: the number of units, and the origin of the scores.
        n = summarize(scores, over=over)["n"].max()
        unit = "held-out subjects" if over == "subjects" else "seeds, of the score over all windows"
        lines += ["", f"Mean ± SD over {n} {unit}.", ""]
        return [*lines, *(f"| ``{line}``" for line in provenance(files)), ""]


def _list_table(rows: pd.DataFrame) -> list[str]:
    """Return a table as reStructuredText. A cell is not broken at "±" or "="."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [list(rows.columns), *rows.to_numpy().tolist()]:
        cells = [re.sub(r" (±|=) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", x) for x in row]
        lines += [f"   {'* ' if i == 0 else '  '}- {cell}" for i, cell in enumerate(cells)]
    return lines


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
