"""The directive ``settings-table``: what ``docs/experiments/settings.py`` has measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from stored_scores import provenance

__all__ = ["SettingsTable", "duration", "rows"]

HEADER = "Data", "Window and patch", "Size", "Pretraining", "Fine-tuning"


def duration(minutes: float) -> str:
    """Return minutes in words, to two digits: seconds, minutes, hours or years."""
    for unit, size in (("years", 60 * 24 * 365.25), ("hours", 60), ("min", 1)):
        if minutes >= 1.5 * size:
            return f"{float(f'{minutes / size:.2g}'):g} {unit}"
    return f"{float(f'{60 * minutes:.2g}'):g} s"


def rows(file: Path) -> list[tuple[str, ...]]:
    """Return the cells of the table; an empty duration is a training that is not needed."""
    found = pd.read_csv(file, comment="#")
    return [
        (
            row["data"],
            f"{row['window_seconds']:g} s and {row['patch_seconds']:g} s at {row['sfreq']:g} Hz",
            f"{row['num_layers']} layers of {row['embed_dim']} features",
            _training(row["pretraining_steps"], row["pretraining_minutes"]),
            _training(row["finetuning_steps"], row["finetuning_minutes"]),
        )
        for _, row in found.iterrows()
    ]


def _training(steps: float, minutes: float) -> str:
    return "none" if pd.isna(steps) else f"{steps:,.0f} steps, {duration(minutes)}"


class SettingsTable(SphinxDirective):
    """Show a table of settings and times: ``.. settings-table:: FILE``, below ``docs/measured``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        file = Path(self.env.srcdir) / "measured" / self.arguments[0]
        self.env.note_dependency(str(file))  # the page is rebuilt when the file changes
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 32 18 14 18 18", ""]
        for row in [HEADER, *rows(file)]:
            lines += [f"   {'* ' if i == 0 else '  '}- {cell}" for i, cell in enumerate(row)]
        lines += ["", *(f"| ``{line}``" for line in provenance([file])), ""]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("settings-table", SettingsTable)
    return {"parallel_read_safe": True}
