"""Measure the run time of the example pages, and store it in docs/measured/gallery.csv.

    python docs/experiments/gallery_times.py [PAGE ...]

The run time is CPU time in seconds of a process with one thread. Pages with PhysioNet recordings
read them from ``BRAINDECODE_PARS_EEG``. If names of pages are given, such as "arithmetic", the rows
of all other pages do not change.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
from stored_table import store_table

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs/measured/gallery.csv"


def main(wanted: list[str]) -> None:
    seconds = {}
    if STORED.exists():
        seconds = pd.read_csv(STORED, comment="#", index_col="page")["seconds"].to_dict()
    for page in sorted((ROOT / "examples").glob("*/plot_*.py")):
        name = page.stem.removeprefix("plot_")
        if wanted and name not in wanted:
            continue
        before = _cpu_seconds()
        one_thread = dict(os.environ, MPLBACKEND="agg", OMP_NUM_THREADS="1")
        # Pages read stored scores relative to their folder, as in the documentation build.
        command = [sys.executable, page.name]
        subprocess.run(command, cwd=page.parent, env=one_thread, check=True)
        seconds[name] = round(_cpu_seconds() - before)
        table = pd.Series(seconds, name="seconds").sort_index().rename_axis("page")
        command = "python docs/experiments/gallery_times.py"
        store_table(table.to_frame(), STORED, command, "seconds of CPU time", "one thread")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:])
