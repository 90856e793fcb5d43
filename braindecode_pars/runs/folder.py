"""The folder of a run: what it is a run of, and whether another may go on in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from braindecode_pars.files import locked, replace_file
from braindecode_pars.pretrained import CARD, WEIGHTS, refuse_classifier_folder
from braindecode_pars.runs.checkpoint import Checkpoint, newest_checkpoint
from braindecode_pars.weights import read_json

__all__ = ["RunFolder"]

#: Parts of the configuration on which the result does not depend.
_IMMATERIAL = ("device", "num_workers")


@dataclass(frozen=True)
class RunFolder:
    """``run.json``, ``metrics.csv``, ``checkpoints/``, ``tensorboard/``, and the encoder."""

    path: Path

    @property
    def description(self) -> Path:
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def is_finished(self) -> bool:
        return all((self.path / name).exists() for name in (WEIGHTS, CARD))

    def check(self, described: Mapping[str, Any], *, resume: bool) -> None:
        """Refuse what would mix two runs.

        Parameters
        ----------
        described : dict
            ``configuration`` and ``store`` of the run to come.
        resume : bool

        Raises
        ------
        ValueError
            When the folder holds something else, or a run that is not to be resumed, or one of
            another configuration, naming every difference; or nothing to resume.
        """
        refuse_classifier_folder(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; name a folder for the run.")
        is_run = self.description.exists()
        if resume and not is_run:
            raise ValueError(f"{self.path} holds no run to resume; leave out resume to begin one.")
        if (self.path / WEIGHTS).exists() and not is_run:
            raise ValueError(f"{self.path} holds another encoder; name another folder.")
        if not is_run and any(not file.name.startswith(".writing-") for file in self._files()):
            raise ValueError(f"{self.path} is not empty and holds no run; name another folder.")
        has_learned = self.is_finished or any(self.checkpoints.glob("step-*"))
        if not resume and has_learned:
            raise ValueError(f"{self.path} holds a run already: resume it, or name another folder.")
        if resume:
            before = self._described()
            found = list(_differences(before, described))
            if found:
                processes = before["sessions"][0]["processes"]
                raise ValueError(
                    f"{self.path} holds a run of another configuration: {'; '.join(found)}. Put "
                    "this back to resume it, or name another folder. (It was begun on "
                    f"{processes} process{'es' if processes > 1 else ''}, from which "
                    "micro_batch_size follows unless it is given.)"
                )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of the folder.

        Raises
        ------
        BlockingIOError
            When another process is writing in it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if os.name != "posix":  # no folder can be opened there
            yield
            return
        descriptor = os.open(self.path, os.O_RDONLY)
        told = f"{self.path} is being written by another run; wait until it has ended."
        try:
            with locked(descriptor, told):
                yield
        finally:
            os.close(descriptor)

    def begin_session(
        self, described: Mapping[str, Any], session: Mapping[str, Any], *, resume: bool
    ) -> None:
        """Write ``run.json``: what the run is, and by what each session computes it."""
        earlier = self._described()["sessions"] if resume else []
        run = {**described, "sessions": [*earlier, session]}
        replace_file(self.description, f"{json.dumps(run, indent=2, default=str)}\n".encode())

    def _files(self) -> list[Path]:
        return list(self.path.iterdir()) if self.path.exists() else []

    def _described(self) -> dict[str, Any]:
        """What ``run.json`` says.

        Raises
        ------
        ValueError
            When it is damaged.
        """
        run = read_json(self.description)
        try:
            dict(run["configuration"])
            _ = run["store"]["checksum"], run["sessions"][0]["processes"]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ValueError(
                f"{self.description} does not describe a run ({error!r}); put it back, or name "
                "another folder."
            ) from error
        return run

    def newest(self) -> Checkpoint | None:
        return newest_checkpoint(self.checkpoints)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Clauses such as "lr 0.0001 instead of 0.001"."""
    before, now = (json.loads(json.dumps(described, default=str)) for described in (before, now))
    old, new = before["configuration"], now["configuration"]
    for name in dict.fromkeys([*new, *old]):
        if name not in _IMMATERIAL and old.get(name) != new.get(name):
            yield f"{name} {new.get(name)} instead of {old.get(name)}"
    old, new = (described["store"]["checksum"] for described in (before, now))
    if old != new:
        yield f"a store with the checksum {new} instead of {old}, with other recordings in it"
