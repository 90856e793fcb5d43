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


def test_preprocessing_of_arrays_is_unknown():
    X = np.random.default_rng(0).normal(size=(8, 2, 100))
    clf = classifier(pretext=None, validation=0, sfreq=50.0).fit(X, [0, 1] * 4)
    assert clf.preprocessing_ == Preprocessing(sfreq=50.0, window_seconds=2.0)
    assert warnings_of(clf.predict, X) == []  # their rate is not known
    [message] = warnings_of(clf.predict, X[:, :, :50])
    assert re.search("50 samples .* 100 samples", message)


OTHER = dict(filter=dict(l_freq=1.0, h_freq=60.0), notch_filter=dict(freqs=50.0))


@pytest.mark.parametrize(
    ("recordings", "seconds", "pattern"),
    [
        ([STEPS], 2.0, None),
        ([{}], 2.0, None),  # unknown
        (
            [dict(filter=dict(l_freq=0.3, h_freq=60.0), notch_filter=dict(freqs=50.0))],
            2.0,
            r"band 0\.3-60 Hz, but 0\.5-60 Hz in training\. Apply the training preprocessing",
        ),
        (
            [dict(filter=dict(l_freq=1.0, h_freq=30.0))],
            2.0,
            r"band 1-30 Hz, but 0\.5-60 Hz in training\. .* original .*\(affected: band\)",
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
    with pytest.warns(UserWarning, match=r"0\.5-60 Hz in 15 .* 1-60 Hz in 15"):
        clf = classifier(pretext=None, validation=0).fit(windows_of(STEPS, OTHER))
    assert (clf.preprocessing_.band, clf.preprocessing_.notch) == (None, (50.0,))


def test_the_argument_completes_the_recorded_preprocessing():
    X = np.random.default_rng(0).normal(size=(8, 2, 100))
    given = {"sfreq": 50.0, "band": [0.5, 20], "channels": ["C3", "C4"], "scale": 1e6}
    clf = classifier(pretext=None, validation=0, preprocessing=given).fit(X, [0, 1] * 4)
    assert clf.sfreq_ == 50.0
    assert clf.preprocessing_ == Preprocessing.of({**given, "window_seconds": 2.0})


def test_the_argument_takes_precedence_with_a_warning():
    clf = classifier(pretext=None, validation=0, preprocessing=Preprocessing(band=(0.5, 45)))
    with pytest.warns(UserWarning, match=r"0\.5-60 Hz, but 0\.5-45 Hz in the argument"):
        clf.fit(windows_of(STEPS))
    assert clf.preprocessing_.band == (0.5, 45)
    # The reference may have been set before the recordings were read.
    clf.set_params(preprocessing={"reference": "average"})
    assert not any("contradicts" in text for text in warnings_of(clf.fit, windows_of(STEPS)))
    assert clf.preprocessing_.reference == "average"


def test_two_rates_that_contradict_each_other_are_an_error():
    clf = classifier(pretext=None, sfreq=100.0, preprocessing={"sfreq": 50.0})
    with pytest.raises(ValueError, match=r"50 Hz.* 100 Hz"):
        clf.fit(np.zeros((8, 2, 100)), [0, 1] * 4)
    with pytest.raises(ValueError, match="200 Hz"):
        classifier(pretext=None, preprocessing={"sfreq": 50.0}).fit(windows_of(STEPS))


def test_a_saved_classifier_keeps_it(fitted, tmp_path):
    loaded = PARSClassifier.load(fitted.save(tmp_path / "model"))
    assert loaded.preprocessing_ == fitted.preprocessing_
    given = classifier(pretext=None, validation=0, preprocessing={"band": BAND})
    given.fit(windows_of(STEPS)).save(tmp_path / "given")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the parameter is JSON, nothing is left out
        assert PARSClassifier.load(tmp_path / "given").preprocessing == {"band": list(BAND)}


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


def test_an_encoder_warns_of_windows_with_another_band():
    encoder = embedder().fit(windows_of(STEPS))
    other = windows_of(dict(filter=dict(l_freq=0.5, h_freq=30.0), rescale=dict(scalings=1e6)))
    with pytest.warns(UserWarning, match=r"0\.5-30 Hz, but 0\.5-60 Hz in pretraining") as caught:
        classifier(encoder=encoder, validation=0).fit(other)
    texts = [str(warning.message) for warning in caught]
    (message,) = [text for text in texts if text.startswith("Preprocessing")]
    assert "scale" not in message  # an encoder normalizes the amplitude


def test_unlabeled_windows_are_part_of_the_card():
    other = dict(filter=dict(l_freq=0.3, h_freq=60.0), notch_filter=dict(freqs=50.0))
    clf = classifier(validation=0)
    with pytest.warns(UserWarning, match=r"unlabeled .*0\.3-60 Hz"):
        clf.fit(windows_of(STEPS), unlabeled=windows_of(other))
    card = clf.encoder_card_.preprocessing
    assert (card.band, card.notch, card.sfreq) == (None, (50.0,), 200.0)
    assert clf.preprocessing_.band == BAND


def test_windows_of_a_store_keep_it(tmp_path):
    windows = windows_of(STEPS, STEPS)
    store = SignalStore.create(tmp_path / "store", windows, dtype="float32", verbose=0)
    labeled = store.labeled_windows()
    clf = classifier(pretext=None, validation=0).fit(labeled)
    assert (
        clf.preprocessing_.known()
        == classifier(pretext=None, validation=0).fit(windows).preprocessing_.known()
    )
    labeled.datasets[0].raw.load_data().filter(5, 30, verbose="error")
    assert warnings_of(clf.predict, labeled) == []  # a changed recording is unknown
    encoder = embedder().fit(store.windows(400))
    assert encoder.encoder_card_.preprocessing.band == BAND
