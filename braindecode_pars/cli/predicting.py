"""Implementation of the command ``predict``: find and predict recordings, and summarize results.

Existing results are only replaced with ``--overwrite``. The summary contains the time in each
class, sleep statistics and findings. In each call, it is computed from all results in the folder.
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

    If a recording cannot be predicted, the summary contains the reason, and the remaining
    recordings are predicted.

    Parameters
    ----------
    model : str
        Folder of a saved classifier, or ``hf://owner/name`` for a model on the Hugging Face Hub.
    paths : sequence of Path
        Recordings, and folders of recordings.
    out : Path
        Folder for the results.
    device : str
        Device on which the model is computed.
    overwrite : bool
        Whether to replace existing results for which another model, other options or a different
        version of a recording was used.
    adapt : bool
        Whether to adapt the model to each recording before predicting this recording.
    **options
        Arguments ``overlap``, ``smooth`` and ``rescale`` of ``predict_raw``.

    Returns
    -------
    int
        Number of recordings that could not be predicted.

    Raises
    ------
    ValueError, OSError
        If the model or the recordings are not found. If ``out`` contains files, but no results of
        predictions. If existing results would be replaced, but ``overwrite`` is False. In these
        cases, no files are written.
    """
    targets = find_recordings(paths)
    model_folder = model_files.model_folder(model)
    kinds = model_files.kinds_in(model_folder)
    classifiers = (kind for kind in kinds if model_files.ENTRIES.get(kind) == "classifier")
    kind = names.MODEL_KINDS[next(classifiers, model_files.CLASSIFIER)]
    with checks.quiet("unsaved_parameters"):  # they are parameters of fit, which is not called here
        clf = kind.load().load(model, device=device)
    if options["smooth"]:
        check_transitions(clf)
    if expected := getattr(clf, "expected_score_", None):
        show(
            "Expected {metric} on a new subject: {score:.2f} (95 % prediction interval from "
            "{low:.2f} to {high:.2f}).".format(**expected)
        )
    weights = model_folder / model_files.MODEL_FILES[model_files.CLASSIFIER][0]
    settings = dict(model=files.checksum_of_file(weights), **options, version=__version__)
    if adapt:
        if not hasattr(clf, "adapt"):
            raise ValueError(
                f"--adapt requires a FewLabelsClassifier, but the model in {model} is a "
                f"{type(clf).__name__}. Omit --adapt, or train another model with "
                "braindecode-pars fit --few-labels."
            )
        settings["adapt"] = True
    folder = ResultsFolder(out, "predictions", marks=(MARK,))
    if folder.is_ours:
        files.read_checked(out / MARK)  # raises an error if another program wrote this file
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
    """Predict a recording and write the results. Return the reason if this fails, otherwise None.

    Warnings and the rescaling factor are printed after the name of the recording.
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
                write(f"The model was adapted to the recording, with {basis}.")
            frame = clf.predict_raw(results.recording, **options)
        if factor := frame.attrs["findings"].get("rescaled_by"):
            write(f"Signals were multiplied by {factor:.3g} to match the training amplitude.")
        for message in dict.fromkeys(str(message) for message, *_ in caught):
            write(message)
        results.write(frame, state)
    except Exception as error:  # continue with the remaining recordings after an error of any type
        problem = str(error) or type(error).__name__
        write(f"The recording could not be predicted. {problem}")
        return problem
    return None


def show_summary(table: pd.DataFrame, file: Path, n_recordings: int, n_finished: int) -> None:
    """Print the time in each class, the main sleep statistics, and the names of the written files.

    Parameters
    ----------
    table : DataFrame
        Summary of all recordings, which was written to ``file``.
    file : Path
        Path of the summary.
    n_recordings : int
        Number of recordings that were passed to the command.
    n_finished : int
        Number of passed recordings that an earlier call had already predicted.
    """
    minutes = [name for name in table if str(name).startswith(MINUTES)]
    headings = {
        "recording": "recording",
        **{name: f"{name.removeprefix(MINUTES)} (min)" for name in minutes},
        "SE": "sleep efficiency (%)",
        "SOL": "sleep latency (min)",
        "windows_not_predicted": "windows not predicted",
        "n_findings": "findings",
        "problem": "problem",
    }
    shown = table[[name for name in headings if name in table and table[name].notna().any()]]
    if "problem" in shown:  # the full reasons would make the table wider than a terminal
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
                "Possible data leakage: in these recordings, the subject has the same name as a "
                f"training subject of the model: {checks.format_list(seen.tolist())}. If it is the "
                "same subject, the predictions are probably more accurate than they would be for a "
                "new subject."
            )
    if n_failed < n_recordings:
        show(
            f"Results written to {file.parent}, with a summary in {file.name}. The predicted "
            "probabilities are not calibrated: on new subjects, they are often too close to 0 or 1."
        )


def find_recordings(paths: Iterable[Path]) -> dict[Path, Path]:
    """List recordings, and choose the relative paths of their results.

    Parameters
    ----------
    paths : iterable of Path
        Files, and folders that contain recordings, also in subfolders. Files that do not exist are
        not an error here: they are reported as failed recordings later, so that the remaining
        recordings are predicted.

    Returns
    -------
    dict of Path to Path
        The keys are the paths of the recordings. The values are the paths of their results, without
        the file extension, relative to the folder for results. For a file in ``paths``, the value
        is the file name; for a recording in a folder, the value is the path of the recording
        relative to this folder.

    Raises
    ------
    FileNotFoundError
        If a folder contains no recording.
    ValueError
        If two recordings would have the same result files, or if two header files refer to the same
        signal file.
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
                f"The recordings {first} and {file} would have the same result files, such as "
                f"{target}_predictions.csv. Predict them in two calls with different --out "
                "folders, or pass a folder that contains both recordings in different subfolders."
            )
    return targets
