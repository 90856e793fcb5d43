"""Folders of other programs and of other results: no writer changes them, no reader takes them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet
from braindecode_pars.runs import pretrain
from braindecode_pars.study.study_design import Settings, check_settings
from fuzz import folders, small
from fuzz.outcomes import CLEAR_ERRORS

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

#: Files that other programs may have in a folder.
FOREIGN = {
    "config.json": b'{"editor": "mine"}',
    "settings.json": b'{"python.defaultInterpreterPath": "/usr/bin"}',
    "scores.csv": b"name,points\nanna,3\n",
    "model.safetensors": b"not yours",
    "classifier.json": b"{}",
    "embedder.json": b"{}",
    "encoder.json": b"{}",
    "encoder.safetensors": b"mine",
    "store.json": b"{}",
    "samples.bin": b"mine",
    "run.json": b"{}",
    "metrics.csv": b"a,b\n",
    "thesis.docx": b"three years",
    "kappa.png": b"\x89PNG mine",
}
#: Writer -> kind of the folder that it writes, and call with a folder.
WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "PARSClassifier.save": (
        "classifier",
        lambda path: PARSClassifier.load(folders._made("classifier", 0), device="cpu").save(path),
    ),
    "PARSEmbedder.save": (
        "embedder",
        lambda path: PARSEmbedder.load(folders._made("embedder", 0), device="cpu").save(path),
    ),
    "PARSNet.save_pretrained": (
        "net",
        lambda path: PARSNet.from_pretrained(folders._made("net", 0)).save_pretrained(path),
    ),
    "SignalStore.create": ("store", lambda path: folders._build_store(path, 0)),
    "leave_one_subject_out(out=)": ("folds", folders._run_folds),
    "study(out=)": ("study", lambda path: check_settings(Settings(), path)),
    "runs.pretrain": (
        "run",
        lambda path: pretrain(folders._made("store", 0), path, folders._config(), verbose=0),
    ),
    "PARSClassifier(checkpoint_dir=)": (
        "checkpoints",
        lambda path: small.make("classifier", sfreq=small.SFREQ, checkpoint_dir=path).fit(
            small.signals(0), small.LABELS
        ),
    ),
}


def contents(path: Path) -> dict[Path, bytes]:
    return {file: (path / file).read_bytes() for file in folders._files(path)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("writer", WRITERS)
def test_files_of_other_programs_are_not_written_over(writer, tmp_path):
    for i, names in enumerate([[name] for name in FOREIGN] + [["README.md", "thesis.docx"]]):
        path = tmp_path / str(i)
        path.mkdir()
        for name in names:
            (path / name).write_bytes(FOREIGN.get(name, b"# my model\n"))
        before = contents(path)
        with pytest.raises(ValueError, match="|".join(map(re.escape, names))):
            WRITERS[writer][1](path)
        assert before.items() <= contents(path).items()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("writer", WRITERS)
def test_results_of_another_kind_are_not_written_over(writer, tmp_path):
    kind, write = WRITERS[writer]
    for other in {"classifier", "embedder", "net", "store", "folds", "run"} - {kind}:
        path = shutil.copytree(folders._made(other, 1), tmp_path / other, symlinks=True)
        before = contents(path)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            write(path)
        assert before.items() <= contents(path).items()


#: Kinds of folders that are folders of other kinds, too.
ROLES = {"classifier": {"net", "encoder"}, "net": {"encoder"}, "embedder": {"encoder"}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("written", [kind for kind in folders.KINDS if "encoder" not in kind])
def test_a_folder_of_one_kind_is_not_read_as_another(written, tmp_path):
    for used, (_, open_folder) in folders.KINDS.items():
        path = shutil.copytree(folders._made(written, 0), tmp_path / used, symlinks=True)
        role = "encoder" if used.startswith("encoder") else used
        if role == written or role in ROLES.get(written, ()):
            open_folder(path)
        else:
            with pytest.raises(CLEAR_ERRORS):
                open_folder(path)
