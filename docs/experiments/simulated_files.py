"""Write simulated recordings in the formats that the package reads, for digests.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import edfio
import mne
import mne_bids
import numpy as np
import wfdb

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support import apnea_nights, corpora, edf_files

#: Folder of each corpus below the one of :func:`write_corpora`.
CORPORA = dict(
    ysyw="challenge-2018/1.0.0",
    tuab="tuh_eeg_abnormal/v3.0.1",
    tusz="tuh_eeg_seizure/v2.0.3",
    tueg="tuh_eeg/v2.0.1",
    eesm17="ds004348/1.0.5",
    physionet_mi="eegmmidb/1.0.0",
    ucddb="ucddb/1.0.0",
)


def recording(
    names: Iterable[str] = ("C3", "C4", "F3"),
    sfreq: float = 256.0,
    seconds: float = 100.0,
    seed: int = 0,
) -> mne.io.RawArray:
    """Return noise whose power falls with frequency, with labels of three sleep stages."""
    names, rng = list(names), np.random.default_rng(seed)
    signals = rng.standard_normal((len(names), round(sfreq * seconds))).cumsum(axis=1)
    signals -= signals.mean(axis=1, keepdims=True)
    signals *= 2e-5 / signals.std(axis=1, keepdims=True)
    raw = mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="error")
    return raw.set_annotations(mne.Annotations([0, 30, 60], 30, ["W", "N2", "N3"]))


def changed(raw: mne.io.RawArray, change: Callable[[np.ndarray], Any]) -> mne.io.RawArray:
    """Change the signals of a recording in place."""
    change(raw._data)
    return raw


def write_edf(file: Path, raw: mne.io.BaseRaw, **header: Any) -> Path:
    """Write a recording with its annotations as EDF+ or, by the name of the file, as BDF+."""
    is_bdf = file.suffix == ".bdf"
    of_channel = edfio.BdfSignal if is_bdf else edfio.EdfSignal
    signals = [
        of_channel(1e6 * values, raw.info["sfreq"], label=name, physical_dimension="uV", **header)
        for name, values in zip(raw.ch_names, raw.get_data(), strict=True)
    ]
    marks = [
        edfio.EdfAnnotation(mark["onset"], mark["duration"], mark["description"])
        for mark in raw.annotations
    ]
    (edfio.Bdf if is_bdf else edfio.Edf)(signals, annotations=marks).write(file)
    return file


def write_records(file: Path, kind: str, gap: int = 0) -> Path:
    """Write 95 records of a second, with a gap in seconds after the first 40."""
    values = np.round(1e6 * recording(sfreq=100.0, seconds=95).get_data())
    onsets = [*range(40), *range(40 + gap, 95 + gap)]
    texts = {0: "+0\x1530\x14W", 60: f"+{60 + gap}\x1530\x14N2"}
    labels = ["EEG C3", "EEG C4", "EEG F3"]
    return edf_files.write_edf_records(file, values, onsets, labels=labels, texts=texts, kind=kind)


def write_wfdb(file: Path, raw: mne.io.BaseRaw) -> Path:
    """Write a WFDB record in millivolts."""
    n_chans = len(raw.ch_names)
    about: dict[str, Any] = dict(fs=raw.info["sfreq"], units=["mV"] * n_chans)
    about |= dict(sig_name=raw.ch_names, fmt=["16"] * n_chans, write_dir=str(file.parent))
    wfdb.wrsamp(file.stem, p_signal=1e3 * raw.get_data().T, **about)
    return file


def write_fif(file: Path, raw: mne.io.BaseRaw) -> Path:
    """Write a recording in single precision."""
    raw.save(file, verbose="error")
    return file


def write_export(file: Path, raw: mne.io.BaseRaw) -> Path:
    """Write a file of BrainVision or EEGLAB."""
    mne.export.export_raw(file, raw, verbose="error")
    return file


def write_bids(root: Path) -> Path:
    """Write a BIDS data set of one recording with a bad channel and an EOG channel."""
    raw = recording(["C3", "C4", "F3", "VEOG"], sfreq=200.0)
    raw.set_channel_types({"VEOG": "eog"}).info["line_freq"] = 50
    raw.info["bads"] = ["F3"]
    path = mne_bids.BIDSPath("01", task="sleep", datatype="eeg", suffix="eeg", root=root)
    options: dict[str, Any] = dict(format="BrainVision", allow_preload=True, verbose="error")
    mne_bids.write_raw_bids(raw, path, **options)
    return path.update(extension=".vhdr").fpath


def write_files(root: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the path of recordings in several formats, and one that is not a file."""
    root.mkdir()
    plain, marked = recording(), recording()
    with_heart = recording(["EEG C3", "EEG C4", "EEG F3", "ECG"])
    yield "edf", write_edf(root / "plain.edf", with_heart)
    yield "edf-ears", write_edf(root / "ears.edf", recording(["C3-A2", "C4-A1", "F3-A2"]))
    band = dict(prefiltering="HP:1.0Hz LP:20Hz")
    yield "edf-prefiltered", write_edf(root / "prefiltered.edf", plain, **band)
    yield "edf-records", write_records(root / "records.edf", "EDF+D")
    yield "edf-gap", write_records(root / "gap.edf", "EDF+D", gap=20)
    cut = root / "cut.edf"
    cut.write_bytes((root / "plain.edf").read_bytes()[:-30_000])
    yield "edf-cut", cut
    yield "bdf", write_edf(root / "plain.bdf", recording(["C3", "C4", "F3", "O1"], sfreq=128.0))
    yield "bdf-records", write_records(root / "records.bdf", "BDF+D")
    marked.set_annotations(marked.annotations + mne.Annotations([35, 75], [5, 0], "BAD move"))
    yield "fif-bad-times", write_fif(root / "marked_raw.fif", marked)
    flat = changed(recording(), lambda signals: signals[1].fill(0))
    yield "fif-flat", write_fif(root / "flat_raw.fif", flat)
    clipped = changed(recording(), lambda signals: signals.clip(-1e-5, 1e-5, out=signals))
    yield "fif-clipped", write_fif(root / "clipped_raw.fif", clipped)
    loud = recording(["C4", "F3", "Pz"]).apply_function(lambda signals: 100 * signals)
    yield "fif-missing-loud", write_fif(root / "loud_raw.fif", loud)
    yield "bids", write_bids(root / "bids")
    pairs = recording(["C3-M2", "C4-M1", "F3-M2", "SaO2"])
    yield "wfdb", write_wfdb(root / "night.hea", pairs)
    yield "brainvision", write_export(root / "plain.vhdr", plain)
    yield "eeglab", write_export(root / "plain.set", plain)
    filtered = recording().filter(0.5, 30, verbose="error")
    yield "raw", filtered.set_eeg_reference("average", verbose="error")


def write_folder(root: Path) -> Path:
    """Write four subjects in four formats and two sampling rates, with labels in the files."""
    formats = [(write_edf, "a.edf"), (write_edf, "b.bdf"), (write_fif, "c_raw.fif")]
    for number, (write, name) in enumerate([*formats, (write_export, "d.vhdr")]):
        folder = root / f"sub-{number}"
        folder.mkdir(parents=True)
        rate = (128.0, 256.0)[number % 2]
        write(folder / name, recording(["C3", "C4", "F3", "ECG"], rate, seed=number))
    return root


def write_corpora(root: Path) -> Path:
    """Write small trees in the formats of published corpora."""
    corpora.write_corpora(root)
    for subject in ("ucddb002", "ucddb003"):
        apnea_nights.write(root / CORPORA["ucddb"], subject)
    return root
