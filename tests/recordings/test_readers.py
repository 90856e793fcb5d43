"""All functions open a recording together with its BIDS tables."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records
from support.small_estimators import classifier

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import folder
from braindecode_pars.predictions.recording import prepare_recording
from braindecode_pars.recordings.readers import open_recording, read_with_tables
from braindecode_pars.recordings.side_tables import read_table, table_beside
from braindecode_pars.signal_store import SignalStore

SFREQ = 100.0
NAMES = ("Fz", "C3", "C4", "Pz", "Lid", "T8")
#: An eye channel and a bad channel, by this table only.
CHANNELS = "name\ttype\tunits\tstatus\n" + "".join(
    f"{name}\t{'EOG' if name == 'Lid' else 'EEG'}\tuV\t{'bad' if name == 'T8' else 'good'}\n"
    for name in NAMES
)
EVENTS = "onset\tduration\ttrial_type\n0\t30\tA\n30\t30\tB\n22\t3\tBAD_movement\n"


def recording(names=NAMES, seconds=60, seed=0):
    data = 1e-5 * np.random.default_rng(seed).standard_normal((len(names), int(seconds * SFREQ)))
    return mne.io.RawArray(data, mne.create_info(list(names), SFREQ, "eeg"), verbose="error")


def bids(root, *, ending="edf", subjects=("01", "02"), is_above=False):
    """Write recordings with BIDS tables in the folder of the recording, or in that above all."""
    root.mkdir(exist_ok=True)
    (root / "dataset_description.json").write_text("{}")
    for i, subject in enumerate(subjects):
        name, own = f"sub-{subject}_task-rest", root / f"sub-{subject}" / "eeg"
        own.mkdir(parents=True)
        recording(seed=i).export(own / f"{name}_eeg.{ending}", verbose="error")
        start = root / "task-rest" if is_above else own / name
        for kind, text in (("channels", CHANNELS), ("events", EVENTS)):
            start.with_name(f"{start.name}_{kind}.tsv").write_text(text)
    return root


def file_of(root, subject="01"):
    return next(root.glob(f"sub-{subject}/**/*_eeg.*[fr]"))


READING = dict(window_seconds=10, sfreq=SFREQ, low=1, high=40, mains=None, verbose=0)


@pytest.mark.filterwarnings("ignore:Possible data leakage")
@pytest.mark.filterwarnings("ignore:.*4 channels")
def test_all_functions_read_the_same_data(tmp_path):
    root = bids(tmp_path / "data", is_above=True)
    windows = folder.load(root, reference="average", **READING)
    clf = classifier(pretext=None).fit(windows)
    X, _, _ = as_sklearn(windows)
    assert len(X) == 10  # without the one that the bad time touches, in each recording

    file = file_of(root)
    raw, name = open_recording(file)
    prepared = prepare_recording(raw, name, clf)
    assert np.allclose(prepared.signals[:, :1000], X[0], atol=1e-4 * X[0].std())
    frame = clf.predict_raw(file)
    assert frame["label"].isna().tolist() == [False, False, True, False, False, False]
    with (
        pytest.warns(UserWarning, match=r"Lid, T8\..*bad segments .*: 1\..*pass the path"),
        pytest.warns(UserWarning, match="average reference.*: Lid"),
    ):
        clf.predict_raw(mne.io.read_raw(file, verbose="error"))

    store = SignalStore.create(tmp_path / "store", root, verbose=0)
    assert [*map(list, store.recordings["ch_names"])] == [["Fz", "C3", "C4", "Pz"]] * 2


def table_at(root, name):
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(EVENTS)
    return file


def test_which_table_belongs_to_a_recording(tmp_path):
    """That of the nearest folder, whose name states nothing else than that of the recording."""
    one = tmp_path / "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_run-2_eeg.edf"
    for name in (
        "task-rest_run-1_events.tsv",
        "task-sleep_events.tsv",
        "sub-02/task-rest_events.tsv",
        "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_run-1_events.tsv",
        "sub-01/ses-a/sub-01_ses-b_events.tsv",
    ):
        table_at(tmp_path, name)
    assert table_beside(one, "events") is None
    for name in (
        "events.tsv",
        "task-rest_events.tsv",
        "task-rest_run-2_events.tsv",
        "sub-01/sub-01_task-rest_events.tsv",
        "sub-01/ses-a/sub-01_events.tsv",
        "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_events.tsv",
        "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_run-2_events.tsv",
    ):
        table = table_at(tmp_path, name)
        assert table_beside(one, "events") == table
    table_at(tmp_path / "sub-03", "eeg/sub-03_run-1_events.tsv")
    table_at(tmp_path / "sub-03", "eeg/sub-03_task-rest_events.tsv")
    with pytest.raises(ValueError, match=r"sub-03_run-1_events.*sub-03_task-rest_events"):
        table_beside(tmp_path / "sub-03/eeg/sub-03_task-rest_run-1_eeg.edf", "events")
    table_at(tmp_path / "sub-04", "eeg/sub-04_run-01_events.tsv")
    with pytest.raises(ValueError, match=r"sub-04_run-01_events"):
        table_beside(tmp_path / "sub-04/eeg/sub-04_run-1_eeg.edf", "events")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text.replace("uV", "\u00b5V").encode(),
        lambda text: text.replace("\t", ";").replace("\n", "\r\n").encode(),
        lambda text: text.replace("name\ttype", "Name\tType").replace("good", "n/a").encode(),
        lambda text: text.replace("bad", "Bad; noisy").encode(),
    ],
)
def test_odd_tables_of_channels_that_are_clear(tmp_path, change):
    root = bids(tmp_path, subjects=("01",))
    next(root.glob("sub-01/**/*_channels.tsv")).write_bytes(change(CHANNELS))
    raw, _ = open_recording(file_of(root))
    assert raw.info["bads"] == ["T8"]
    assert raw.get_channel_types() == ["eeg"] * 4 + ["misc", "eeg"]


def test_a_channel_that_the_file_marks_is_bad_unless_the_table_has_a_status(tmp_path):
    raw = recording()
    raw.info["bads"] = ["Fz", "C3"]
    raw.save(tmp_path / "a_eeg.fif", verbose="error")
    rows = ["name\tstatus", "Fz\tn/a", "C3\tgood", "Pz\tbad"]
    (tmp_path / "a_channels.tsv").write_text("\n".join(rows))
    assert read_with_tables(tmp_path / "a_eeg.fif").info["bads"] == ["Fz", "Pz"]


def test_the_table_may_call_a_signal_eeg(tmp_path):
    """Where labels of others begin with "EEG"; but no ECG, and nothing in percent."""
    labels, units = ["EEG Cz", "C4", "LAT", "ECG", "X1"], ["uV"] * 4 + ["%"]
    file = write_edf_records(
        tmp_path / "a.edf", np.eye(5, 100, dtype=int), [0.0], labels=labels, units=units
    )
    types = zip(labels, ["EEG", "EEG", "SEEG", "EEG", "EEG"], strict=True)
    rows = [f"{label}\t{kind}" for label, kind in types]
    (tmp_path / "a_channels.tsv").write_text("\n".join(["name\ttype", *rows]))
    raw = read_with_tables(file)
    assert raw.get_channel_types() == ["eeg", "eeg", "seeg", "misc", "misc"]
    np.testing.assert_allclose(raw.get_data()[1, :2], [0, 1e-6], atol=1e-9)


def test_the_folder_of_the_data_and_the_working_directory(tmp_path, monkeypatch):
    data, here = tmp_path / "data", tmp_path / "here"
    for place, site in ((data, "Bonn"), (here, "Lyon")):
        place.mkdir()
        (place / "participants.tsv").write_text(f"participant_id\tsite\nsub-01\t{site}\n")
    monkeypatch.chdir(here)
    with pytest.raises(ValueError, match=r"here/participants\.tsv.*absolute path"):
        read_table("participants.tsv", data)
    assert read_table(here / "participants.tsv", data)["site"].tolist() == ["Lyon"]
    (here / "participants.tsv").unlink()
    assert read_table("participants.tsv", data)["site"].tolist() == ["Bonn"]
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_table("absent.csv", data)


def test_the_table_makes_no_eeg_of_a_signal_without_a_scale(tmp_path):
    (tmp_path / "a.dat").write_bytes(bytes(range(200)))
    gains = ["a.dat 16 10/uV 16 0 0 0 0 C3", "a.dat 16 0/uV 16 0 0 0 0 C4"]
    (tmp_path / "a.hea").write_text("\n".join(["a 2 100 50", *gains]))
    (tmp_path / "a_channels.tsv").write_text("name\ttype\nC3\tEEG\nC4\tEEG\n")
    assert read_with_tables(tmp_path / "a.hea").get_channel_types() == ["eeg", "misc"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("name", "label", 1), "lacks the required columns name"),
        (lambda text: text + "T8\tEOG\tuV\tgood\n", "'T8' .*twice"),
        (lambda text: text + "O1\tEEG\tuV\tgood\tx\n", "line 8"),
    ],
)
def test_odd_tables_of_channels_that_are_not_clear(tmp_path, change, message):
    root = bids(tmp_path, subjects=("01",))
    next(root.glob("sub-01/**/*_channels.tsv")).write_text(change(CHANNELS))
    with pytest.raises(ValueError, match=rf"_channels\.tsv.*{message}"):
        open_recording(file_of(root))
