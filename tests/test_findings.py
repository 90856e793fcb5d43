"""Findings as values: texts, warnings, processes, and that no code reads a sentence."""

from __future__ import annotations

import ast
import pickle
import re
import warnings
from collections import defaultdict
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning

import braindecode_pars
from braindecode_pars._common import checks, findings
from braindecode_pars._common.finding_texts import TEXTS, format_finding
from braindecode_pars._common.findings import Finding, FindingWarning, NotConverged

PACKAGE = Path(braindecode_pars.__file__).parent
FLAT = Finding("flat_windows", dict(n=3, n_windows=9, rows=[0, 2], window=17))


#: Values of any finding by their names; other values are 1.
LISTS = ("channels", "first", "used", "rows", "pairs", "names", "reasons", "recordings", "value")
VALUES = defaultdict(lambda: 1, {name: ["A", "B"] for name in (*LISTS, "classes", "sources")})
DURATIONS = dict(value={"C3": 60.0}, total=60.0)
#: Values of findings that are dicts.
OF_KINDS = {
    "too_few_of_class": dict(counts={"rest": 3}),
    "confounds": dict(counts=[("Graz", {"rest": 3, "task": 0})]),
    "preprocessing_of_windows": dict(
        counts=[1, 2], differences=["band", "notch"], beginning="Windows differ"
    ),
    "other_reference": dict(value={"C3": "C3-M1"}),
    "flat_channels": DURATIONS,
    "clipped_channels": DURATIONS,
    "unusual_amplitudes": dict(value={"found": {"C3": 4.0}, "trained": [1.0, 2.0]}),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_every_kind_has_a_text_of_its_values(kind):
    text = format_finding(kind, VALUES | OF_KINDS.get(kind, {}))
    assert text[0].isupper() or text[0].isdigit()
    assert "{" not in text.replace("{'scale': 1e6}", "")


def test_lists_in_texts():
    assert "window 17 (channel index 0, 2)" in FLAT.text
    values = dict(channels=["C3", "C4"], n=1, n_windows=4)
    assert "C3, C4 (in 1 of 4 windows)" in Finding("bad_channels", values).text


def test_a_warning_from_another_process_is_a_user_warning_with_kind_and_values():
    def warned(n):
        caught = []
        with findings.collected(caught):
            warnings.simplefilter("always")
            findings.warn(Finding("flat_windows", FLAT.values | dict(n=n)))
            findings.warn(Finding("first_epoch_best", dict(n_epochs=n)), NotConverged)
        return pickle.loads(pickle.dumps(caught))  # as joblib sends it

    of_workers = [warned(3), warned(4)]
    (flat, category, *_), (epochs, *_) = of_workers[1]
    assert (flat.kind, flat.finding.values["n"], category) == ("flat_windows", 4, FindingWarning)
    assert str(flat) == flat.finding.text
    assert "4 of 9 windows" in str(flat)
    assert isinstance(flat, UserWarning)
    assert isinstance(epochs, ConvergenceWarning)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        findings.warn_once([*of_workers, []])
    assert [(w.message.kind, w.message.finding.n, w.message.n_folds) for w in caught] == [
        ("flat_windows", 2, 3),
        ("first_epoch_best", 2, 3),
    ]
    assert str(caught[0].message) == f"In 2 of 3 folds: {FLAT.text}"


def test_findings_with_other_texts_are_not_merged():
    other = Finding("flat_windows", FLAT.values | dict(rows=[1], n=5))
    assert other.identity == FLAT.identity  # rows are numbers
    one, two = (
        Finding("bad_channels", dict(channels=[name], n=1, n_windows=2)) for name in ("C3", "C4")
    )
    assert one.identity != two.identity


def test_warnings_of_a_class_with_other_arguments_are_shown():
    caught = []
    with findings.collected(caught):
        warnings.simplefilter("always")
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name="SVC", current_sklearn_version="2", original_sklearn_version="1"
            ),
            stacklevel=1,
        )
    with pytest.warns(UserWarning, match="SVC"):
        findings.warn_once([caught])


def test_kinds_are_silent_in_a_context_only():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with checks.quiet("other_unit"), checks.quiet("flat_windows"):
            findings.warn(FLAT)
        with checks.quiet("other_unit"), pytest.raises(FindingWarning):
            findings.warn(FLAT)


#: Modules that read texts, which are not sentences of the package.
READS = {
    "_common/channel_names.py",
    "_common/checks.py",  # names of files of tasks
    "_common/hosts.py",  # a warning of MNE
    "_common/model_files.py",  # names of models on the Hub
    "_common/sleep_stages.py",
    "_common/subjects.py",  # names of subjects and corpora
    "_common/tables.py",  # columns, and methods of scores that earlier versions have written
    "baselines/network.py",  # a warning of braindecode
    "cli/terminal.py",  # docstrings
    "estimators/pars_estimator.py",  # class names that are numbers
    "estimators/windows_estimator.py",  # names of attributes
    "evaluation/audit_figures.py",  # numbers
    "evaluation/cache.py",  # names of files and attributes
    "evaluation/splitters.py",  # a warning of scikit-learn
    "evaluation/score_figures.py",  # math mode
    "plotting/style.py",  # labels of matplotlib
    "predictions/night.py",  # names of files
    "predictions/results.py",  # names of files
    "pretrained/cards.py",  # licenses
    "signal_store/writing.py",  # labels of recordings
    "study/data_check.py",  # names of columns
    "study/study_answers.py",  # numbers
    "windows/marks.py",  # annotations
    "windows/recorded_steps.py",  # arguments of functions
}
#: Folders that read names of files, headers, tables and annotations.
FOLDERS = ("recordings/", "datasets/")
METHODS = ("match", "search", "sub", "fullmatch", "findall", "endswith")
#: Text of files that may call such a method. Only these files are parsed, to be fast.
CALLS = re.compile(rf"\.\s*({'|'.join(METHODS)}|replace|filterwarnings)\s*\(")


def reads_text(call):
    """Whether a call may read a sentence; ``replace`` also changes names, as of a metric."""
    method = call.func.attr
    arguments = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if method == "filterwarnings":
        return len(call.args) > 1 or any(keyword.arg == "message" for keyword in call.keywords)
    if method == "replace":
        return len(arguments) > 0 and arguments not in (["_", " "], ["-", " "], ["-", "_"])
    return method in METHODS


def test_no_code_reads_a_sentence():
    """Values go up instead of sentences; warnings are silenced by their kind."""
    reading = set()
    for file in PACKAGE.rglob("*.py"):
        content = file.read_text("utf-8") if CALLS.search(file.read_text("utf-8")) else ""
        calls = [node for node in ast.walk(ast.parse(content)) if isinstance(node, ast.Call)]
        if any(isinstance(call.func, ast.Attribute) and reads_text(call) for call in calls):
            reading.add(file.relative_to(PACKAGE).as_posix())
    assert {name for name in reading if not name.startswith(FOLDERS)} <= READS
