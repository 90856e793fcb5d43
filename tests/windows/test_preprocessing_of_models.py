"""The preprocessing of the windows of ``fit``: read, kept, and compared with others."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import Preprocessor, create_fixed_length_windows, preprocess
from support.small_estimators import classifier, embedder

from braindecode_pars import PARSClassifier, PARSEmbedder
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.preprocessing import Preprocessing

BAND = (0.5, 60.0)
STEPS = dict(filter=dict(l_freq=0.5, h_freq=60.0), notch_filter=dict(freqs=50.0))


def windows_of(*recordings, seconds=2.0):
    """One recording for each dict of steps, cut by braindecode into windows of two classes."""
    sets = []
    for subject, steps in enumerate(recordings, 1):
        noise = 1e-5 * np.random.default_rng(subject).standard_normal((2, 6_000))
        info = mne.create_info(["C3", "C4"], 200.0, "eeg")
        raw = mne.io.RawArray(noise, info, verbose="error")
        one = BaseConcatDataset([RawDataset(raw, {"subject": subject, "target": 0}, "target")])
        steps = [Preprocessor(fn, apply_on_array=False, **kw) for fn, kw in steps.items()]
        if steps:
            preprocess(one, steps)
        size = round(seconds * one.datasets[0].raw.info["sfreq"])
        (windows,) = create_fixed_length_windows(
            one, window_size_samples=size, window_stride_samples=size, on_last_window="drop"
        ).datasets
        windows.y = (np.arange(len(windows)) % 2).tolist()
        sets.append(windows)
    return BaseConcatDataset(sets)


@pytest.fixture(scope="module")
def fitted():
    return classifier(pretext=None, validation=0).fit(windows_of(STEPS, STEPS))


def warnings_of(function, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    return [str(warning.message) for warning in caught]


def test_records_of_braindecode_are_read(fitted):
    assert fitted.preprocessing_ == Preprocessing(
        sfreq=200.0,
        band=BAND,
        notch=(50.0,),
        reference="as recorded",
        scale=1.0,
        channels=("C3", "C4"),
        window_seconds=2.0,
        amplifier=BAND,
    )


OTHER = dict(filter=dict(l_freq=1.0, h_freq=60.0), notch_filter=dict(freqs=50.0))


@pytest.mark.parametrize(
    ("recordings", "seconds", "pattern"),
    [
        ([STEPS], 2.0, None),
        (
            [dict(filter=dict(l_freq=0.3, h_freq=60.0), notch_filter=dict(freqs=50.0))],
            2.0,
            r"band 0\.3-60 Hz, but 0\.5-60 Hz in training\. Apply the preprocessing",
        ),
        (
            [dict(set_eeg_reference={})],
            1.0,
            r"band not filtered, but 0\.5-60 Hz in training; "
            "notch none, but 50 Hz in training; "
            "reference average, but as recorded in training; "
            r"window length 1 s, but 2 s in training\. .* original .*\(affected: reference\)",
        ),
        ([STEPS, OTHER, STEPS], 2.0, r"1-60 Hz.*15 of 45"),
    ],
)
def test_windows_to_predict_are_compared_once_a_call(fitted, recordings, seconds, pattern):
    windows = windows_of(*recordings, seconds=seconds)
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.score):
        messages = warnings_of(method, windows)
        expected = [] if pattern is None else ["Preprocessing of these windows differs"]
        assert [message[:38] for message in messages] == expected
        assert pattern is None or re.search(pattern, messages[0])


def test_recordings_that_differ_among_themselves_give_a_warning_and_are_unknown():
    with pytest.warns(UserWarning, match=r"1-60 Hz, but 0\.5-60 Hz .*15 of 30"):
        clf = classifier(pretext=None, validation=0).fit(windows_of(STEPS, OTHER))
    assert (clf.preprocessing_.band, clf.preprocessing_.notch) == (None, (50.0,))


def test_the_argument_takes_precedence_with_a_warning():
    clf = classifier(pretext=None, validation=0, preprocessing=Preprocessing(band=(0.5, 45)))
    with pytest.warns(UserWarning, match=r"0\.5-60 Hz, but 0\.5-45 Hz in the argument"):
        clf.fit(windows_of(STEPS))
    assert clf.preprocessing_.band == (0.5, 45)
    # The reference may have been set before the recordings were read.
    clf.set_params(preprocessing={"reference": "average"})
    assert not any("contradicts" in text for text in warnings_of(clf.fit, windows_of(STEPS)))
    assert clf.preprocessing_.reference == "average"
    assert clf.preprocessing_.band == BAND


def test_a_saved_classifier_keeps_it(fitted, tmp_path):
    loaded = PARSClassifier.load(fitted.save(tmp_path / "model"))
    assert loaded.preprocessing_ == fitted.preprocessing_


def test_an_embedder_and_its_card_keep_it(tmp_path):
    fitted = embedder().fit(windows_of(STEPS))
    assert fitted.preprocessing_.notch == (50.0,)
    of_encoder = replace(fitted.preprocessing_, channels=None)  # it sees one at a time
    assert fitted.encoder_card_.preprocessing == of_encoder
    loaded = PARSEmbedder.load(fitted.save(tmp_path / "embedder"))
    assert loaded.preprocessing_ == fitted.preprocessing_
    assert loaded.encoder_card_.preprocessing == of_encoder
    with pytest.warns(UserWarning, match="reference average"):
        loaded.transform(windows_of({**STEPS, "set_eeg_reference": {}}))


def test_unlabeled_windows_are_part_of_the_card():
    other = dict(filter=dict(l_freq=0.3, h_freq=60.0), notch_filter=dict(freqs=50.0))
    clf = classifier(validation=0)
    with pytest.warns(UserWarning, match=r"unlabeled .*0\.3-60 Hz"):
        clf.fit(windows_of(STEPS), unlabeled=windows_of(other))
    card = clf.encoder_card_.preprocessing
    assert (card.band, card.notch, card.sfreq) == (None, (50.0,), 200.0)
    assert clf.preprocessing_.band == BAND


def test_windows_of_a_store_keep_it(fitted, tmp_path):
    windows = windows_of(STEPS, STEPS)
    store = SignalStore.create(tmp_path / "store", windows, dtype="float32", verbose=0)
    labeled = store.labeled_windows()
    clf = classifier(pretext=None, validation=0).fit(labeled)
    assert clf.preprocessing_.known() == fitted.preprocessing_.known()
    encoder = embedder().fit(store.windows(400))
    assert encoder.encoder_card_.preprocessing.band == BAND
