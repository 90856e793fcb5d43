"""The same windows, channels and labels in another form give the same output.

``tests/estimators/test_inputs.py`` compares trainings on the usual types of datasets; these are
unusual types and orders of memory, applied to all kinds of models.
"""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from fuzz import small
from skorch.helper import SliceDataset
from torch.utils.data import Subset

from braindecode_pars import as_sklearn
from braindecode_pars.signal_store import SignalStore

X, LABELS = small.signals(3), small.LABELS

#: Other forms of the same array.
FORMS = {
    "big-endian float64": lambda X: X.astype(">f8"),
    "transposed memory": lambda X: np.ascontiguousarray(X.transpose(2, 0, 1)).transpose(1, 2, 0),
    "negative strides": lambda X: np.ascontiguousarray(X[:, ::-1, ::-1])[:, ::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "masked array without a mask": np.ma.masked_array,
    "strided tensor": lambda X: torch.from_numpy(np.repeat(X, 2, axis=2))[:, :, ::2],
    "list of tensors": lambda X: [torch.from_numpy(window) for window in X],
    "list of lists": lambda X: X.tolist(),
}
#: Types of integers, which are converted to real numbers.
INTEGERS = ("int64", "uint8", ">i2", "float16")

OTHER_UNIT = pytest.mark.filterwarnings("ignore:The amplitude", "ignore:.*offset", "ignore:.*volts")


def same_output(model, inputs, expected, *, rtol: float = 1e-5) -> None:
    np.testing.assert_allclose(small.output(model, inputs), expected, rtol=rtol, atol=1e-5)


@OTHER_UNIT
@pytest.mark.parametrize("name", ["embedder", "band power"])  # all models read windows alike
def test_arrays_of_any_type_and_order_in_memory(name):
    model = small.fitted(name)
    expected = small.output(model, X)
    for form in FORMS.values():
        same_output(model, form(X), expected)
    counts = 100 + 20 * (X / X.std(axis=(0, 2), keepdims=True)).clip(-4, 4)
    for dtype in INTEGERS:
        integers = counts.astype(dtype)
        same_output(model, integers, small.output(model, integers.astype("float32")))


@pytest.mark.parametrize("name", small.MODELS)
def test_a_window_does_not_depend_on_the_other_windows(name):
    order = [7, 2, 2, 11, 0]
    model = small.fitted(name)
    same_output(model, X[order], small.output(model, X)[order])


@pytest.mark.parametrize("name", ["classifier", "embedder"])
@OTHER_UNIT
def test_unit_and_offset_do_not_matter(name):
    model = small.fitted(name)
    expected = small.output(model, X)
    for factor in (1e-3, 1e20):
        same_output(model, X.astype(float) * factor, expected, rtol=1e-2)
    same_output(model, X + np.float32(1e-2), expected, rtol=1e-2)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("equal") / "store"
    return SignalStore.create(path, small.dataset(), dtype="float32", verbose=0)


def epochs(windows) -> mne.EpochsArray:
    return mne.EpochsArray(small.stacked(windows), windows.datasets[0].raw.info, verbose="error")


@pytest.mark.parametrize("name", ["embedder", "network"])
def test_recordings_of_any_container_and_order_of_channels(name, store):
    model, windows = small.fitted_on_recordings(name), small.dataset()
    expected = small.output(model, windows)
    for inputs in (
        as_sklearn(windows)[0],
        Subset(Subset(windows, range(len(windows))), range(12)),
        SliceDataset(windows),
        [windows[i] for i in range(len(windows))],
        epochs(windows),
        store.windows(small.N_TIMES),
    ):
        same_output(model, inputs, expected)
    mixed = [
        small.recording(s).reorder_channels(["C4", "C3"][:: 1 - 2 * (s % 2)]) for s in range(4)
    ]
    parts = [small.windows_of(raw, {"subject": s}) for s, raw in enumerate(mixed)]
    same_output(model, BaseConcatDataset(parts), expected)


#: Names of channels without EEG, although their type is "eeg", as in EDF files.
NOT_EEG = ("ECG1", "HEOG", "EMG_chin", "SpO2", "Airflow", "STI 014", "Resp", "Temp rect")
OTHER_TYPES = ("ecg", "eog", "emg", "stim", "misc", "mag")


@pytest.mark.parametrize("name", ["embedder", "network"])
def test_another_sampling_rate_or_other_channels(name):
    model = small.fitted_on_recordings(name)
    with pytest.raises(ValueError, match=r"99 Hz.* 100 Hz"):
        small.output(model, small.dataset(sfreq=99.0))
    if name == "network":  # has weights for each channel
        for names in (("C3",), ("O1", "O2")):
            with pytest.raises(ValueError, match="C4"):
                small.output(model, small.dataset(names=names))


#: Twelve labels of two classes -> the two classes, sorted. All mean the same as 0 and 1.
CLASSES = {
    "tuple": (tuple(LABELS.tolist()), [0, 1]),
    "string dtype": (pd.Series(np.array(["a", "b"])[LABELS], dtype="string"), ["a", "b"]),
    "negative": (np.array([-7, -2])[LABELS], [-7, -2]),
    "unicode": (np.array(["Jörg", "睡眠"])[LABELS], ["Jörg", "睡眠"]),
}


def fit(name: str, y):
    return small.make(name, sfreq=small.SFREQ).fit(small.signals(0), y)


@pytest.mark.parametrize(("name", "forms"), [("classifier", [*CLASSES]), ("network", ["unicode"])])
def test_names_of_classes_do_not_matter(name, forms):
    expected = small.output(small.fitted(name), X)
    for y, classes in map(CLASSES.get, forms):
        model = fit(name, y)
        assert model.classes_.tolist() == classes
        assert set(model.predict(X).tolist()) <= {*classes}
        same_output(model, X, expected)


#: Subjects of six recordings, which are six different subjects.
SUBJECTS = (
    ["Jörg", "Jürgen", "Åsa", "Ase", "睡", "眠"],
    ["01", "02", "03", "1x", "10", "11"],
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    ["a b", "a  b", "a_b", "a-b", "a.b", "a/b"],
)
#: A missing subject, or several spellings of one subject.
UNCLEAR = (
    [0, 1, 2, 3, 4, None],
    ["a", "b", "c", "d", "e", ""],
    ["1", "01", "2", "02", "3", "03"],
)


def recordings_of(subjects) -> BaseConcatDataset:
    return BaseConcatDataset(
        [
            small.windows_of(small.recording(i), {} if s is None else {"subject": s})
            for i, s in enumerate(subjects)
        ]
    )


def test_different_subjects_are_distinguished():
    for subjects in SUBJECTS:
        windows = recordings_of(subjects)
        assert len(set(as_sklearn(windows)[2].tolist())) == 6
    model = small.make("classifier", validation=0.34).fit(windows, small.targets_of(windows))
    assert len(model.encoder_card_.subjects) == 4  # two are held out


def test_unclear_subjects_are_a_warning():
    for subjects in UNCLEAR:
        windows = recordings_of(subjects)
        model = small.make("network", validation=0.34)
        with pytest.warns(UserWarning, match="subject"):
            model.fit(windows, small.targets_of(windows))
