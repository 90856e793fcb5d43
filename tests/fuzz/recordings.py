"""Recordings with odd montages, kinds of channels and subjects; the same data by other roads."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset
from hypothesis import strategies as st
from skorch.helper import SliceDataset
from torch.utils.data import Subset

from braindecode_pars import as_sklearn
from braindecode_pars.signal_store import SignalStore
from fuzz import small
from fuzz.outcomes import FOLDER_PREFIX, Case, refused

models = st.sampled_from(sorted(small.MODELS))

#: Names of channels that are no EEG, although their type says "eeg", as in EDF files.
NOT_EEG = (
    *("ECG", "ECG1", "EKG-2", "EOG1", "EOG-L", "HEOG", "VEOG", "ROC", "LOC", "EMG", "EMG_chin"),
    *("EMG1-EMG2", "SpO2", "SaO2", "HR", "Pleth", "Flow", "Airflow", "TRIG", "STI 014", "Status"),
    *("Resp", "Thor", "Abdo", "Snore", "Position", "Photic", "Event", "Marker", "DC1", "Temp rect"),
)
KINDS = ("ecg", "eog", "emg", "stim", "misc", "resp", "bio", "temperature", "mag")


def as_epochs(windows: BaseConcatDataset) -> mne.EpochsArray:
    info = windows.datasets[0].raw.info
    return mne.EpochsArray(small.stacked(windows), info, verbose="error")


@cache
def _store() -> SignalStore:
    path = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX), "store")
    return SignalStore.create(path, small.dataset(), dtype="float32", verbose=0)


#: The windows of ``small.dataset()`` by other roads.
ROADS = {
    "array": small.stacked,
    "list of arrays": lambda windows: list(small.stacked(windows)),
    "as_sklearn": lambda windows: as_sklearn(windows)[0],
    "subset": lambda windows: Subset(windows, range(len(windows))),
    "nested subset": lambda windows: Subset(Subset(windows, range(len(windows))), range(12)),
    "slice dataset": lambda windows: SliceDataset(windows),
    "list of tuples": lambda windows: [windows[i] for i in range(len(windows))],
    "epochs": as_epochs,
    "list of recordings": lambda windows: BaseConcatDataset(list(windows.datasets)),
    "store": lambda windows: _store().windows(small.N_TIMES),
}


@st.composite
def roads(draw):
    """The same windows by another road give the same output."""
    name, road = draw(models), draw(st.sampled_from(sorted(ROADS)))
    fit = draw(st.booleans()) and road != "store" and name != "band power"
    seed = draw(st.integers(0, 99))

    def fitted(X):
        windows = small.dataset()
        model = small.make(name, random_state=seed, sfreq=small.SFREQ)
        if "electrode_position" in model.get_params():
            # "auto" uses the names of channels, which only some of the roads know.
            model.set_params(electrode_position=False)
        if "head" in model.get_params():
            model.set_params(head="attention")  # "auto" asks for names, too
        return model.fit(X, small.targets_of(windows))

    def act(folder):
        inputs = ROADS[road](small.dataset())
        if fit:
            return small.output(fitted(inputs), inputs)
        model = small.fitted_on_recordings(name)
        if name == "band power":
            model = small.fitted(name)  # arrays need sfreq
        return small.output(model, inputs)

    def problem(returned):
        windows = small.dataset()
        model = fitted(windows) if fit else small.fitted_on_recordings(name)
        return small.differs(returned, small.output(model, windows))

    did = f"fitted (random_state={seed}) and applied" if fit else "fitted on windows and applied"
    return Case(f"{name} {did} to dataset() as {road}", act, problem)


def _exchanged(raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
    return raw.copy().reorder_channels(raw.ch_names[::-1])


@st.composite
def permuted(draw):
    """Channels in another order, with their names, mean the same: to predict, or in training."""
    name = draw(models)
    which = draw(st.lists(st.booleans(), min_size=4, max_size=4))
    # A network has weights for each channel; the encoder draws a channel at random by its number.
    fit = draw(st.booleans()) and name == "network"
    if fit:
        which[0] = False  # the first recording defines the order

    def make_windows():
        raws = [small.recording(s) for s in range(4)]
        return BaseConcatDataset(
            [
                small.windows_of(_exchanged(raw) if change else raw, {"subject": s})
                for s, (raw, change) in enumerate(zip(raws, which, strict=True))
            ]
        )

    def act(folder):
        windows = make_windows()
        if fit:
            model = small.make(name).fit(windows, small.targets_of(windows))
            return small.output(model, small.dataset())
        return small.output(small.fitted_on_recordings(name), windows)

    def problem(returned):
        model = small.fitted_on_recordings(name)
        return small.differs(returned, small.output(model, small.dataset()))

    changed = [s for s in range(4) if which[s]]
    return Case(
        f"{name} {'fitted on' if fit else 'applied to'} recordings with the channels of subjects "
        f"{changed} in reverse order",
        act,
        problem,
    )


@st.composite
def other_channels(draw):
    """Channels that are no EEG change nothing, whether their type or only their name says so."""
    name = draw(models)
    n = draw(st.integers(1, 3))
    extra, kinds = [], []
    for number in range(n):
        if draw(st.booleans()):
            extra.append(draw(st.sampled_from([o for o in NOT_EEG if o not in extra])))
            kinds.append("eeg")
        else:
            kinds.append(draw(st.sampled_from(KINDS)))
            extra.append(f"X{number}")
    where = draw(st.integers(0, 2))
    fit = draw(st.booleans()) and name != "band power"
    as_array_of_epochs = draw(st.booleans()) and not fit

    def make_windows():
        names = (*small.NAMES[:where], *extra, *small.NAMES[where:])
        types = [*["eeg"] * where, *kinds, *["eeg"] * (2 - where)]
        return small.dataset(names=names, kinds=types)

    def act(folder):
        windows = make_windows()
        if as_array_of_epochs:
            return small.output(small.fitted_on_recordings(name), as_epochs(windows))
        if fit:
            model = small.make(name).fit(windows, small.targets_of(windows))
            return small.output(model, windows)
        return small.output(small.fitted_on_recordings(name), windows)

    def problem(returned):
        model = small.fitted_on_recordings(name)
        return small.differs(returned, small.output(model, small.dataset()))

    how = "epochs" if as_array_of_epochs else "dataset"
    pairs = ", ".join(f"{e}: {k}" for e, k in zip(extra, kinds, strict=True))
    return Case(
        f"{name} {'fitted on and ' if fit else ''}applied to a {how} with ({pairs}) at {where}",
        act,
        problem,
    )


@st.composite
def montages(draw):
    """Channels that were in training are missing, or the sampling rate is another."""
    name = draw(models)
    kind = draw(st.sampled_from(["one missing", "renamed", "another rate", "other names later"]))

    def act(folder):
        model = small.fitted_on_recordings(name)
        if kind == "one missing":
            windows = small.dataset(names=("C3",))
        elif kind == "renamed":
            windows = small.dataset(names=("O1", "O2"))
        elif kind == "another rate":
            windows = small.dataset(sfreq=draw_rate)
        else:
            parts = [small.recording(0), small.recording(1, names=("O1", "Fz"))]
            windows = BaseConcatDataset(
                [small.windows_of(raw, {"subject": s}) for s, raw in enumerate(parts)]
            )
            if name != "band power":
                model = small.make(name).fit(windows, small.targets_of(windows))
        return windows, small.output(model, windows)

    draw_rate = draw(st.sampled_from([50.0, 99.0, 101.0, 128.0, 256.0]))

    def problem(returned):
        windows, values = returned
        if kind == "another rate" and name != "band power":
            return f"windows at {draw_rate:g} Hz were accepted, trained at 100 Hz"
        if name == "network":
            return f"{kind}: a network needs the channels that it was trained on"
        if kind == "other names later" and name != "band power":
            return None  # any montage, by design
        return None if len(values) == len(windows) else f"{len(values)} rows"

    return Case(f"{name} on recordings: {kind}, {draw_rate:g} Hz", act, problem)


#: Subjects of six recordings, and whether they are six different subjects.
SUBJECTS = {
    "integers": ([0, 1, 2, 3, 4, 5], True),
    "strings": (list("abcdef"), True),
    "unicode": (["Jörg", "Jürgen", "Åsa", "Ase", "睡", "眠"], True),
    "zeros before": (["01", "02", "03", "1x", "10", "11"], True),
    "floats": ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], True),
    "with spaces": (["a b", "a  b", "a_b", "a-b", "a.b", "a/b"], True),
    "one without": ([0, 1, 2, 3, 4, None], False),
    "one NaN": ([0, 1, 2, 3, 4, float("nan")], False),
    "one empty": (["a", "b", "c", "d", "e", ""], False),
    "mixed": ([1, "1", 2, "2", 3, "3"], False),
    "01 and 1": (["1", "01", "2", "02", "3", "03"], False),
}


@st.composite
def subjects(draw):
    """Subjects of any type are distinguished. A missing subject is an error or a warning."""
    name = draw(st.sampled_from(["classifier", "network"]))
    kind, seed = draw(st.sampled_from(sorted(SUBJECTS))), draw(st.integers(0, 99))
    ids, clear = SUBJECTS[kind]

    def act(folder):
        parts = [
            small.windows_of(small.recording(i), {} if s is None else {"subject": s})
            for i, s in enumerate(ids)
        ]
        windows = BaseConcatDataset(parts)
        model = small.make(name, validation=0.34, random_state=seed)
        return model.fit(windows, small.targets_of(windows)), windows

    def problem(returned):
        model, windows = returned
        if not clear:
            return f"validation by subject although the subjects are {ids}"
        n = as_sklearn(windows)[2]
        if len(set(map(str, n.tolist()))) != 6:
            return f"six subjects became {sorted(set(map(str, n.tolist())))}"
        card = getattr(model, "encoder_card_", None)
        if card is not None and len(card.subjects or ()) not in (0, 4, 5):
            return f"pretrained on {card.subjects} of six, two of them for validation"
        return None

    return Case(f"{name}.fit of recordings with subjects {ids}, random_state={seed}", act, problem)


@st.composite
def stores(draw):
    """The signals of a store are those of the recordings, to the precision of its type."""
    dtype = draw(st.sampled_from(["int16", "float32"]))
    scale = draw(st.sampled_from([1.0, 1e-3, 1e3, 1e-6]))
    artifact = draw(st.sampled_from([None, 1e-3, 1.0]))
    seed = draw(st.integers(0, 99))

    def raw():
        made = small.recording(seed)
        made._data *= scale
        if artifact is not None:
            made._data[0, 17] = artifact * max(scale, 1.0)
        return made

    def act(folder):
        windows = small.windows_of(raw(), {"subject": 1})
        store = SignalStore.create(folder / "store", windows, dtype=dtype, verbose=0)
        return store.windows(small.N_TIMES)[0]

    def problem(returned):
        expected = raw().get_data()[:, : small.N_TIMES]
        level = np.median(np.abs(expected), axis=1, keepdims=True)
        error = np.abs(returned - expected)
        if artifact is not None:
            error[0, 17] = 0
        worst = float((error / level).max())
        return None if worst < 0.01 else f"a sample is wrong by {worst:.2g} of the signal's level"

    return Case(
        f"SignalStore of recording({seed}) times {scale:g} as {dtype}, artifact {artifact}",
        act,
        problem,
    )


@st.composite
def refused_recordings(draw):
    """What is no dataset of windows is refused."""
    name = draw(models)
    kind = draw(
        st.sampled_from(
            ["continuous", "a raw", "no recordings", "a path", "a store", "annotations"]
        )
    )

    def act(folder):
        inputs = {
            "continuous": lambda: BaseConcatDataset([_raw_dataset()]),
            "a raw": lambda: small.recording(0),
            "no recordings": lambda: [],
            "a path": lambda: folder,
            "a store": _store,
            "annotations": lambda: small.recording(0).annotations,
        }[kind]()
        if name == "band power":
            return small.output(small.fitted(name), inputs)
        if kind == "a store" and name == "embedder":
            raise TypeError("not a case: an embedder pretrains on stores") from None
        return small.make(name).fit(inputs, None)

    def oracle(result):
        return refused(kind)(result)

    if kind == "a store" and name == "embedder":
        kind = "a raw"
    return Case(f"{name} on {kind}", act, oracle)


def _raw_dataset():
    from braindecode.datasets import RawDataset

    return RawDataset(small.recording(0), {"subject": 0})


cases = st.one_of(
    *(roads(), roads(), permuted(), other_channels(), other_channels(), montages()),
    *(subjects(), stores(), refused_recordings()),
)
