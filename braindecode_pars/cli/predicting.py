"""Implementation of the command ``predict``: find and predict recordings, and summarize results.

Existing results are only replaced with ``--overwrite``. The summary is recomputed from all results
in the folder: time in each class, sleep statistics and findings.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars import __version__
from braindecode_pars._common import checks, files, model_files, names, subjects, training
from braindecode_pars._common.findings import Collected, collected
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.predictions.adaptation import adapted_to
from braindecode_pars.predictions.recording import check_transitions
from braindecode_pars.predictions.results import (
    MARK,
    MINUTES,
    SUMMARY,
    Results,
    write_summary,
)
from braindecode_pars.recordings import folders, search


def predict_recordings(
    model: str,
    paths: Sequence[Path],
    out: Path,
    *,
    device: str,
    overwrite: bool,
    adapt: bool = False,
    **options: Any,
) -> int:
    """Predict recordings, write and print a summary, and return the number of failed recordings.

    If a recording cannot be predicted, the reason is in the summary, and the other recordings are
    predicted.

    Parameters
    ----------
    model : str
        Folder of a saved classifier, or its name on the Hugging Face Hub.
    paths : sequence of Path
        Recordings, and folders of recordings.
    out : Path
        Folder of the results.
    device : str
        Device of the model.
    overwrite : bool
        Whether to replace results of a different version of a recording, another model or other
        options.
    adapt : bool
        Whether to adapt the model to each recording before predicting it.
    **options
        ``overlap``, ``smooth`` and ``rescale`` of ``predict_raw``.

    Raises
    ------
    ValueError, OSError
        If the model or the recordings are not found. If ``out`` contains other files. If
        ``overwrite`` is False, and results of a changed recording, model or option would be
        replaced. In these cases, no files are written.
    """
    targets = find_recordings(paths)
    model_folder = model_files.model_folder(model)
    kinds = model_files.kinds_in(model_folder)
    classifiers = (kind for kind in kinds if model_files.ENTRIES.get(kind) == "classifier")
    kind = names.MODEL_KINDS[next(classifiers, model_files.CLASSIFIER)]
    with checks.quiet("unsaved_parameters"):  # of fit, which this command does not call
        clf = kind.load().load(model, device=device)
    if options["smooth"]:
        check_transitions(clf)
    if expected := getattr(clf, "expected_score_", None):
        show(
            "Expected {metric} on a new subject: {score:.2f} (95 % prediction interval {low:.2f} "
            "to {high:.2f}).".format(**expected)
        )
    weights = model_folder / model_files.MODEL_FILES[model_files.CLASSIFIER][0]
    settings = dict(model=files.checksum_of_file(weights), **options, version=__version__)
    if adapt:
        if not hasattr(clf, "adapt"):
            raise ValueError(
                f"--adapt requires a model that was trained with fit --few-labels, but {model} is "
                f"a {type(clf).__name__}. Omit --adapt, or train a model with fit --few-labels."
            )
        settings["adapt"] = True
    folder = ResultsFolder(out, "predictions", marks=(MARK,))
    if folder.is_ours:
        files.read_checked(out / MARK)  # refuses a file of the same name of another program
    with folder.opened():
        all_results = [Results(file, folder, target, settings) for file, target in targets.items()]
        unfinished = [
            results for results in all_results if not results.finished(overwrite=overwrite)
        ]
        if not folder.is_ours:
            folder.put(MARK, {"command": "braindecode-pars predict"})
        problems: dict[str, str] = {}
        try:
            with training.ProgressBar(
                unfinished, desc="predicting", unit=" recordings", disable=not unfinished
            ) as bar:
                for results in bar:
                    if problem := _predict(clf, results, options, bar, adapt=adapt):
                        problems[str(results.target)] = problem
        finally:  # also after Ctrl-C
            table = write_summary(folder, problems)
    show_summary(table, out / SUMMARY, len(targets), len(targets) - len(unfinished))
    return len(problems)


def _predict(
    clf: Any, results: Results, options: dict[str, Any], bar: Any, *, adapt: bool
) -> str | None:
    """Predict a recording and write its results; return the reason of a failure, or None.

    Warnings and the rescaling factor are printed with the name of the recording.
    """

    def write(text: str) -> None:
        bar.write(f"{results.recording.name}: {text}", file=sys.stderr)

    try:
        state = results.state()
        caught: list[Collected] = []
        with collected(caught):
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            if adapt:
                clf, basis = adapted_to(clf, results.recording, rescale=options["rescale"])
                write(f"adapted to {basis}.")
            frame = clf.predict_raw(results.recording, **options)
        if factor := frame.attrs["findings"].get("rescaled_by"):
            write(f"rescaled to the amplitude of the training data (factor {factor:.3g}).")
        for message in dict.fromkeys(str(message) for message, *_ in caught):
            write(message)
        results.write(frame, state)
    except Exception as error:  # readers raise any error; predict the remaining recordings
        problem = str(error) or type(error).__name__
        write(f"failed. {problem}")
        return problem
    return None


def show_summary(table: pd.DataFrame, file: Path, n_recordings: int, n_finished: int) -> None:
    """Print the time in each class, the main sleep statistics, and the written files.

    Parameters
    ----------
    table : DataFrame
        The summary in ``file``.
    file : Path
        File of the summary.
    n_recordings : int
        Number of recordings passed to the command.
    n_finished : int
        Number of these recordings that had already been predicted.
    """
    minutes = [name for name in table if str(name).startswith(MINUTES)]
    headings = {
        "recording": "recording",
        **{name: f"{name.removeprefix(MINUTES)} (min)" for name in minutes},
        "SE": "sleep efficiency (%)",
        "SOL": "sleep latency (min)",
        "windows_not_predicted": "not predicted",
        "n_findings": "findings",
        "problem": "problem",
    }
    shown = table[[name for name in headings if name in table and table[name].notna().any()]]
    if "problem" in shown:  # the reasons of failures would make the table wider than a terminal
        shown = shown.assign(problem=shown["problem"].where(shown["problem"].isna(), "failed"))
    print_frame(shown.rename(columns=headings))
    n_failed = table["problem"].notna().sum()
    if n_finished:
        show(f"{n_finished} of {n_recordings} recordings had already been predicted.")
    if n_failed:
        show(f"{n_failed} of {n_recordings} recordings could not be predicted. Reasons: {file}")
    if "findings" in table:
        seen = table["recording"][table["findings"].str.contains("subject_in_training", na=False)]
        if len(seen):
            show(
                "Data leakage: these recordings have the identifier of a training subject: "
                f"{checks.format_list(seen.tolist())}. If the subject is the same, the predictions "
                "do not indicate the accuracy on new subjects."
            )
    if n_failed < n_recordings:
        show(
            f"Results written to {file.parent}, with a summary in {file.name}. Probabilities are "
            "not calibrated: on new subjects, they are often too close to 0 and 1."
        )


def find_recordings(paths: Iterable[Path]) -> dict[Path, Path]:
    """Return recordings, with the relative paths of their results.

    Parameters
    ----------
    paths : iterable of Path
        Files, and folders with recordings at any depth. Files that do not exist are included, so
        that the remaining recordings are predicted.

    Returns
    -------
    dict of Path to Path
        For each recording, its name without ending. For recordings in a folder, the path relative
        to this folder, without ending.

    Raises
    ------
    FileNotFoundError
        If a folder contains no recording.
    ValueError
        If two recordings would have the same result files, or two headers refer to the same file of
        signals.
    """
    paths = [path.expanduser() for path in paths]
    search.check_signal_files(path for path in paths if path.is_file())
    targets: dict[Path, Path] = {}
    for path in paths:
        is_folder = path.is_dir()
        for file in folders.recordings_below(path) if is_folder else [path]:
            target = file.relative_to(path if is_folder else path.parent)
            name = subjects.without_ending(target.name)
            targets.setdefault(file.absolute(), target.with_name(name))
    recording_of: dict[Path, Path] = {}
    for file, target in targets.items():
        if (first := recording_of.setdefault(target, file)) != file:
            raise ValueError(
                f"{first} and {file} would have the same result files, such as "
                f"{target}_predictions.csv. Predict them into different folders, or pass a folder "
                "that contains both in different subfolders."
            )
    return targets
