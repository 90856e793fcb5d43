"""Adaptation to a recording: labels of annotations, and rescaled signals."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support.small_estimators import save_ensemble

from braindecode_pars import FewLabelsClassifier
from braindecode_pars.baselines.new_subject import first_of_each_class
from braindecode_pars.predictions.adaptation import adapted_to
from braindecode_pars.predictions.recording import class_texts
from braindecode_pars.windows.convert import as_windows


@pytest.fixture(scope="module")
def ensemble(nights, tmp_path_factory):
    folder = save_ensemble(nights, tmp_path_factory.mktemp("ensemble"))
    with pytest.warns(UserWarning, match="not restored"):  # parameters that only matter for fit
        return FewLabelsClassifier.load(folder)


@pytest.mark.parametrize("case", ["annotations", "marks", "one class"])
def test_labels_of_annotations(nights, ensemble, tmp_path, case):
    """The first two windows of each class have an annotation with their sleep stage."""
    names = class_texts(ensemble)
    windows = as_windows(nights.datasets[0])
    is_labeled = first_of_each_class(windows.labels, 2)
    if case == "one class":
        is_labeled = is_labeled & (windows.labels == windows.labels[0])
    first = np.flatnonzero(is_labeled)
    texts = [names[code] for code in windows.labels[first]]
    # A label without a duration applies to the window that starts at its onset, as in fit. Windows
    # that a label covers partly, at its beginning or end, are unlabeled.
    onset, duration = 30.0 * first, {"marks": 0.0}.get(case, 30.0)
    if case == "annotations":
        onset = np.maximum(onset - 10, 0)
        duration = 30 * first + 44 - onset
    raw = nights.datasets[0].raw.copy()
    raw.set_annotations(mne.Annotations(onset, duration, texts).append(1, 0, "cough"))
    raw.save(tmp_path / "P09_raw.fif", verbose="error")
    adapted, basis = adapted_to(ensemble, tmp_path / "P09_raw.fif", rescale=False)
    labels = None
    if case == "one class":  # calibration requires two classes
        assert "unlabeled" in basis
    else:
        assert f"2 {names[0]}" in basis
        labels = np.where(is_labeled, windows.labels, -1)
    expected = ensemble.adapt(windows, labels).predict_proba(windows)
    np.testing.assert_allclose(adapted.predict_proba(windows), expected, atol=2e-4)


def test_a_mark_between_windows_labels_its_own_window(nights, ensemble, tmp_path):
    """A window begins at a mark if it ends within the recording and contains no bad segment."""
    raw = nights.datasets[0].raw.copy().crop(tmax=705, include_tmax=False)
    onset, texts = [45, 675, 675.5, 95], [class_texts(ensemble)[i] for i in (0, 1, 1, 0)]
    raw.set_annotations(mne.Annotations(onset, 0, texts).append(100, 1, "BAD"))
    raw.save(tmp_path / "P09_raw.fif", verbose="error")
    adapted, basis = adapted_to(ensemble, tmp_path / "P09_raw.fif", rescale=False)
    assert f"1 {texts[0]}, 1 {texts[1]}" in basis
    starts = sorted([45, 675, *(start for start in range(0, 675, 30) if start != 90)])
    windows = np.stack([raw.get_data()[:, 100 * s : 100 * (s + 30)] for s in starts])
    labels = np.full(len(starts), -1)
    labels[starts.index(45)], labels[starts.index(675)] = ensemble.classes_[:2]
    expected = ensemble.adapt(windows, labels).predict_proba(windows)
    np.testing.assert_allclose(adapted.predict_proba(windows), expected, atol=2e-4)


def test_signals_are_rescaled_on_request(nights, ensemble, tmp_path):
    raw = nights.datasets[0].raw.copy()
    raw.save(tmp_path / "P09_raw.fif", verbose="error")
    raw.apply_function(lambda signals: 8 * signals, picks="all")
    raw.save(tmp_path / "P10_raw.fif", verbose="error")
    windows = as_windows(nights.datasets[0])
    original, scaled, not_rescaled = (
        adapted_to(ensemble, tmp_path / file, rescale=rescale)[0].predict_proba(windows)
        for file, rescale in (("P09_raw.fif", True), ("P10_raw.fif", True), ("P10_raw.fif", False))
    )
    np.testing.assert_allclose(scaled, original, atol=2e-4)
    assert np.abs(not_rescaled - original).max() > 0.01
