"""Files of a folder that are no recordings which are read: said once, with the way on."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records

from braindecode_pars.datasets import folder
from braindecode_pars.recordings import label_files
from braindecode_pars.recordings.folders import files_beside, recordings_below
from braindecode_pars.recordings.label_files import (
    annotations_of,
    durations_in,
    find_hypnogram,
    labels_in_annotations,
)
from braindecode_pars.recordings.readers import open_recording
from braindecode_pars.recordings.search import why_unreadable
from braindecode_pars.signal_store import SignalStore

RAW = mne.io.RawArray(
    1e-5 * np.random.default_rng(0).standard_normal((2, 3000)),
    mne.create_info(["C3", "C4"], 100.0, "eeg"),
    verbose="error",
)


def write_recording(root: Path, name: str = "P01_raw.fif") -> Path:
    RAW.copy().set_annotations(mne.Annotations([0, 15], 15, ["rest", "task"])).save(
        root / name, verbose="error"
    )
    return root / name


@pytest.mark.parametrize(
    "name", ["P03.gdf", "P04.CNT", "P05.eeg", "P07.nwb", "P08.rec", "P09.edf.gz", "P10.edf_"]
)
def test_other_formats_are_a_warning(tmp_path, name):
    (tmp_path / name).write_bytes(bytes(2000))
    with pytest.raises(FileNotFoundError, match=rf"{name}.*mne"):
        folder.load(tmp_path)
    file = write_recording(tmp_path)
    with pytest.warns(UserWarning, match=rf"not read: {name}.*mne") as caught:
        assert recordings_below(tmp_path) == [file]
    assert len(caught) == 1


def test_a_folder_may_be_a_recording_of_another_format(tmp_path):
    write_recording(tmp_path)
    (tmp_path / "P06.mff").mkdir()
    (tmp_path / "P06.mff" / "signal1.bin").touch()
    with pytest.warns(UserWarning, match=r"not read: P06\.mff"):
        recordings_below(tmp_path)


def test_files_that_belong_to_a_recording_are_not_said(tmp_path):
    """Nor are those of copies, and hidden ones; every door says the others."""
    (tmp_path / "dataset_description.json").write_text("{}")
    RAW.export(tmp_path / "P02.vhdr", verbose="error")
    for name in ("derivatives/a.gdf", ".a.gdf", "notes.txt", "P02.fdt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert recordings_below(tmp_path) == [tmp_path / "P02.vhdr"]


def test_what_mne_makes_of_a_recording_is_no_recording(tmp_path):
    """It is not damaged, either."""
    file = write_recording(tmp_path)
    epochs = mne.make_fixed_length_epochs(RAW, 1.0, verbose="error")
    epochs.save(tmp_path / "P01-epo.fif", verbose="error")
    epochs.average().save(tmp_path / "P01_ave.fif", verbose="error")
    mne.write_events(tmp_path / "P01-eve.fif", np.array([[1, 0, 1]]), verbose="error")
    mne.Annotations(0, 1, "x").save(tmp_path / "P01-annot.fif")
    with pytest.warns(
        UserWarning, match=r"P01-annot\.fif, P01-epo\.fif, P01-eve\.fif, P01_ave\.fif"
    ):
        assert recordings_below(tmp_path) == [file]
    with pytest.raises(ValueError, match=r"P01-epo\.fif .*no continuous recording") as caught:
        open_recording(tmp_path / "P01-epo.fif")
    assert "damaged" not in str(caught.value)
    # By its content, where the name does not tell
    epochs.save(tmp_path / "segments.fif", overwrite=True, verbose="error")
    with pytest.raises(ValueError, match=r"segments\.fif .*no continuous recording"):
        open_recording(tmp_path / "segments.fif")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"),
        ("/annex/objects/MD5E-s9--ab.edf\n", "datalad get"),
        ("../.git/annex/objects/x/y/MD5E-s9--ab.edf", "datalad get"),
    ],
)
def test_pointers(tmp_path, text, command):
    file = tmp_path / "P01.edf"
    file.write_text(text)
    assert command in why_unreadable(file)
    with pytest.raises(ValueError, match=rf"P01\.edf .*placeholder.*{command}"):
        open_recording(file)
    with pytest.raises(ValueError, match=rf"P01\.edf: .*placeholder.*{command}"):
        folder.load(tmp_path)  # labels are looked for in all files
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(ValueError, match="None of 1"):
        SignalStore.create(tmp_path / "store", tmp_path, on_error="warn", verbose=0)


@pytest.mark.parametrize("is_link", [False, True])
def test_a_header_is_here_and_its_signals_are_not(tmp_path, is_link):
    RAW.export(tmp_path / "P01.vhdr", verbose="error")
    (tmp_path / "P01.eeg").unlink()
    if is_link:
        (tmp_path / "P01.eeg").symlink_to(".git/annex/objects/x")
    else:
        (tmp_path / "P01.eeg").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match=r"P01\.vhdr .*P01\.eeg.*Download"):
        open_recording(tmp_path / "P01.vhdr")


@pytest.mark.parametrize("name", ["night.HEA", "night.SET", "night.VHDR", "night_raw.FIF.GZ"])
def test_extensions_in_upper_case_are_read_or_an_error(tmp_path, name):
    (tmp_path / name).write_text("night 1 100 500")
    with pytest.raises(ValueError, match=r"lower case\. Rename"):
        open_recording(tmp_path / name)
    write_edf_records(tmp_path / "night.EDF", np.ones((1, 500)), range(5), kind="EDF+C")
    assert open_recording(tmp_path / "night.EDF")[0].n_times == 500


def hypnogram(root, name, stages=("W", "1")):
    texts = {0: "\x14\0".join(f"+{i * 30}\x1530\x14Sleep stage {s}" for i, s in enumerate(stages))}
    return write_edf_records(root / name, np.zeros((0, 100)), [0], texts=texts, kind="EDF+C")


def test_hypnograms_of_sleep_edf_are_the_labels(tmp_path):
    night = tmp_path / "SC4001E0-PSG.edf"
    write_edf_records(night, np.ones((1, 6000)), range(60), kind="EDF+C", labels=["EEG Fpz-Cz"])
    hypnogram(tmp_path, "SC4001EC-Hypnogram.edf")
    hypnogram(tmp_path, "SC4011EC-Hypnogram.edf", "R")
    with pytest.warns(UserWarning, match=r"not read: SC4011EC-Hypnogram\.edf"):
        assert recordings_below(tmp_path) == [night]
    raw, _ = open_recording(night)
    assert annotations_of(night, raw).description.tolist() == ["Sleep stage W", "Sleep stage 1"]
    assert labels_in_annotations(durations_in([night]), 30) == ["Sleep stage 1", "Sleep stage W"]
    with pytest.raises(ValueError, match=r"Hypnogram\.edf .*annotations but no signals"):
        open_recording(tmp_path / "SC4001EC-Hypnogram.edf")
    first = hypnogram(tmp_path, "SC4001EA-Hypnogram.edf")  # of two scorers
    assert find_hypnogram(night) == first


def test_a_row_of_label_sources_is_all_that_a_format_needs(tmp_path, monkeypatch):
    recording = write_recording(tmp_path)
    labels = tmp_path / "scored-P01_raw.fif.txt"
    labels.write_text("7 left")
    with pytest.warns(UserWarning, match=r"1 file that is not read: scored-P01_raw\.fif\.txt"):
        recordings_below(tmp_path)
    assert files_beside(recording) == [recording]

    def find(file):
        return found if (found := file.with_name(f"scored-{file.name}.txt")).exists() else None

    def read(file, open_recording):
        onset, text = file.read_text().split()
        return mne.Annotations([float(onset)], [open_recording().duration / 30], [text])

    monkeypatch.setattr(label_files, "LABEL_SOURCES", (*label_files.LABEL_SOURCES, (find, read)))
    assert recordings_below(tmp_path) == [recording]
    assert files_beside(recording) == [recording, labels]
    assert durations_in([recording]) == {"left": [1.0]}
    annotations = annotations_of(recording, RAW)
    assert [*annotations.onset, *annotations.description] == [7, "left"]


@pytest.mark.parametrize(
    ("start", "delay"),
    [
        ("01.01.2000.00.00", 0),
        ("01.01.2000.00.50", 50),
        ("31.12.1923.59.30", -30),
        ("02.01.2000.00.00", 0),  # the date of the morning
        ("01.01.8523.59.00", -60),  # a date that was changed
        ("01.01.2001.00.00", 3600),
        (" " * 16, 0),
    ],
)
def test_a_hypnogram_begins_at_the_time_in_its_header(tmp_path, start, delay, recwarn):
    night = tmp_path / "SC4001E0-PSG.edf"
    write_edf_records(night, np.ones((1, 6000)), range(60), kind="EDF+C", labels=["EEG Fpz-Cz"])
    file = hypnogram(tmp_path, "SC4001EC-Hypnogram.edf")
    content = file.read_bytes()
    file.write_bytes(content[:168] + start.encode() + content[184:])
    raw, _ = open_recording(night)
    recwarn.clear()
    assert annotations_of(night, raw).onset.tolist() == [delay, 30 + delay]
    assert [str(each.message)[:23] for each in recwarn] == [] if start.strip() else [file.name]


def test_a_later_part_of_a_recording_is_none_without_the_first(tmp_path):
    """MNE reads from it on: the end of a recording several times, with labels of the whole."""
    raw = mne.io.RawArray(np.ones((9, 120_000)), mne.create_info(9, 100.0, "eeg"), verbose="error")
    for naming, name in (("neuromag", "P01_raw.fif"), ("bids", "sub-01_task-x_eeg.fif")):
        root = tmp_path / naming
        root.mkdir()
        raw.save(root / name, split_size="2MB", split_naming=naming, verbose="error")
        first, *parts = recordings_below(root) + sorted(root.glob("*[2-9]*.fif"))
        assert recordings_below(root) == [first]
        first.rename(tmp_path / first.name)
        later = recordings_below(root)  # so that reading it says why
        assert {*parts} <= {*later}
        for part in later:
            with pytest.raises(ValueError, match=rf"{part.name} .*later part"):
                open_recording(part)


def test_tables_that_belong_to_no_recording_are_named(tmp_path):
    for name in ("sub-01_task-rest_run-1_eeg", "sub-02_task-Rest_eeg", "sub-03_task-rest_eeg"):
        write_recording(tmp_path, f"{name}.fif")
    names = ["sub-01_task-rest_run-01", "sub-02_task-rest", "sub-03_ses-1_task-rest"]
    for name in names:
        (tmp_path / f"{name}_channels.tsv").write_text("name\tstatus\nC3\tbad\n")
    (tmp_path / "task-rest_events.tsv").write_text("onset\tduration\ttrial_type\n")  # of two
    with pytest.warns(UserWarning, match=r"BIDS tables .*_channels\.tsv\. ") as caught:
        files = recordings_below(tmp_path)
    assert len(caught) == 1
    assert all(f"{name}_channels.tsv" in str(caught[0].message) for name in names)
    assert "task-rest_events.tsv" not in str(caught[0].message)
    for file, name in zip(files[:2], names, strict=False):
        with pytest.raises(ValueError, match=rf"{name}_channels\.tsv may belong to {file.name}"):
            open_recording(file)
