"""``braindecode-pars store``: folders and recipes become stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.challenge_records import write as write_record
from support.store_command import invoke, make_tree
from support.temple_trees import truncate, write_recording

from braindecode_pars.datasets import tueg, ysyw
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.signal_store import SignalStore


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree")


def test_a_tree_becomes_a_store(tree, tmp_path):
    path = tmp_path / "store"
    options = ["--reference", "average", "--subject", r"^(\w\w)", "--dtype", "float32"]
    code, output = invoke(tree, path, "--sfreq", 100, "--high", 30, *options)
    assert code == 0, output
    assert "store': 2 recordings, 6 signals, 0.1 h at 100 Hz, float32)" in output
    assert "Subjects (2): an, be." in output
    made = SignalStore.open(path)
    assert made.subjects == ["an", "be"]
    assert made.dtype == "float32"
    expected = dict(high=30, reference="average")
    assert {name: made._index.settings[name] for name in expected} == expected


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> Path:
    """TUEG of three subjects, TUAB with one of them, and YSYW with six."""
    root = tmp_path_factory.mktemp("corpora")
    for subject in ("aaaaaaaa", "aaaaaaab", "aaaaaadd"):
        name = f"000/{subject}/s001_2003/01_tcp_ar/{subject}_s001_t000.edf"
        write_recording(root / "tueg/edf" / name, seconds=95)
    write_recording(root / "tuab/edf/eval/normal/01_tcp_ar/aaaaaaaa_s009_t000.edf", seconds=32)
    for subject in [*(f"tr03-000{i}" for i in range(1, 6)), "te03-0094"]:
        write_record(root / "ysyw", subject, seconds=95)
    (root / "subjects.txt").write_text("aaaaaadd\n\ntr03-0001\nzzzzzzzz\n")
    return root


def windows_of(store: SignalStore, corpus: str) -> np.ndarray:
    """All windows of 30 s of a corpus in a store."""
    subjects = store.recordings["subject"][store.recordings["corpus"] == corpus]
    windows = store.select(subjects).windows(6000)
    return np.stack([windows[i] for i in range(len(windows))])


@pytest.mark.slow
def test_recipes_become_one_store(corpora, tmp_path):
    """Its samples are those of the recipes' windows, of training subjects only."""
    path = tmp_path / "store"
    recipes = [f"--recipe={name}={corpora / name}" for name in ("tueg", "ysyw")]
    exclude = ["--exclude", corpora / "tuab", "--exclude", corpora / "subjects.txt"]
    shares = ["--share", "tueg=1", "--share", "ysyw=1"]
    code, output = invoke(*recipes, *exclude, *shares, path, "--dtype", "float32")
    assert code == 0, output
    assert (
        "tueg: 1 subject (1 recording) of 14,987 in the full corpus. Excluded: 2 subjects" in output
    )
    assert "in the validation and test sets; 1 subject (1 recording) excluded by request." in output
    assert "--exclude contain subjects without any recording (1): zzzzzzzz" in output
    store = SignalStore.open(path)
    assert (store.sfreq, store.shares) == (200, {"tueg": 1, "ysyw": 1})
    names = dict(zip(store.recordings["corpus"], store.recordings["ch_names"], strict=True))
    assert names == {"tueg": list(COMMON_CHANNELS), "ysyw": list(ysyw.CHANNELS)}

    # The same command may change the mixture.
    other = ["--share", "tueg=3", "--share", "ysyw=1"]
    code, output = invoke(*recipes, *exclude, *other, path, "--dtype", "float32")
    assert code == 0, output
    assert SignalStore.open(path).shares == {"tueg": 3, "ysyw": 1}

    # The same samples as the windows of the recipes.
    kept = store.recordings.groupby("corpus")["subject"].apply(list)
    assert kept["tueg"] == ["tueg:aaaaaaab"]
    expected = tueg.load(corpora / "tueg", kept["tueg"], exclude=[corpora / "tuab"], verbose=0)
    expected = np.stack([x for x, *_ in expected])
    np.testing.assert_allclose(windows_of(store, "tueg"), expected, rtol=1e-6, atol=1e-12)
    recordings = {f"ysyw:{r.subject}": r for r in ysyw.recordings(corpora / "ysyw")}
    splits = {subject: recording.description["split"] for subject, recording in recordings.items()}
    trained_on = {s for s, split in splits.items() if split in ("train", "unlabeled")}
    assert set(kept["ysyw"]) == trained_on - {"ysyw:tr03-0001"}
    nights = [fixed_windows(ysyw.prepare(recordings[subject])) for subject in kept["ysyw"]]
    expected = np.stack([x for night in nights for x, *_ in night])
    np.testing.assert_allclose(windows_of(store, "ysyw"), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tueg=tuab"], "tuab"),
        (["tueg=absent"], "absent contains no recording"),
        (["tuag=tueg"], "'eegmat', 'eesm17'"),
        (["eesm17=empty"], "no recording of eesm17"),
        (["ysyw=ysyw", "--exclude", "tuab"], "the folder tuab, but YSYW shares no"),
        (["ysyw=ysyw", "--exclude", "list.txt"], "list.txt"),
        (["ysyw=ysyw", "--set", "ysyw.sfreq=1"], "YSYW has no setting sfreq"),
        (["ysyw=ysyw", "--share", "tueg=1"], "(ysyw), and no other names. Got: tueg"),
        (["ysyw=ysyw", "--recipe", "ysyw=ysyw"], "ysyw occurs twice"),
    ],
)
def test_invalid_recipes(corpora, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(corpora)
    Path("empty").mkdir(exist_ok=True)
    code, output = invoke("--recipe", *arguments, tmp_path / "store")
    assert code == 1
    assert output.startswith(("Error: ", "ysyw: "))
    assert message in output
    assert not (tmp_path / "store").exists()


def test_a_half_downloaded_corpus_keeps_what_is_stored(corpora, tmp_path):
    for subject in ("te03-0001", "te03-0002"):
        write_record(tmp_path / "ysyw", subject, seconds=40)
    truncate(tmp_path / "ysyw/test/te03-0002/te03-0002.mat")
    arguments = ["--recipe", f"ysyw={tmp_path / 'ysyw'}", tmp_path / "store"]
    code, output = invoke(*arguments)
    assert code == 1
    assert "ysyw: 2 subjects (2 recordings) of 1,983 in the full corpus." in output
    assert "te03-0002.mat cannot be stored" in output
    assert "same call resumes" in output
    code, output = invoke(*arguments, "--on-error", "warn")
    assert code == 0, output
    skipped = "Skipped recording ysyw/test/te03-0002/te03-0002.mat: the file cannot be read"
    assert skipped in output
    assert "Traceback" not in output
