"""The folder of a run: what it is a run of, and whether another may go on in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from braindecode_pars.pretrained import CARD, WEIGHTS, check_no_classifier
from braindecode_pars.runs._checkpoint import Checkpoint, newest_checkpoint
from braindecode_pars.storage._atomic import (
    is_leftover,
    locked,
    remove_leftovers,
    replace_file,
)
from braindecode_pars.storage._json import read_json, to_json
from braindecode_pars.storage._settings import differences

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
        check_no_classifier(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; name a folder for the run.")
        is_run = self.description.exists()
        if resume and not is_run:
            raise ValueError(f"{self.path} holds no run to resume; leave out resume to begin one.")
        if (self.path / WEIGHTS).exists() and not is_run:
            raise ValueError(f"{self.path} holds another encoder; name another folder.")
        if not is_run and not all(map(is_leftover, self._files())):
            raise ValueError(f"{self.path} is not empty and holds no run; name another folder.")
        has_learned = self.is_finished or any(self.checkpoints.glob("step-*"))
        if not resume and has_learned:
            raise ValueError(f"{self.path} holds a run already: resume it, or name another folder.")
        if resume:
            before = self._described()
            found = _differences(before, described)
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
        told = f"{self.path} is being written by another run; wait until it has ended."
        with locked(self.path, told):
            for folder in (self.path, self.checkpoints):
                remove_leftovers(folder)
            yield

    def begin_session(
        self, described: Mapping[str, Any], session: Mapping[str, Any], *, resume: bool
    ) -> None:
        """Write ``run.json``: what the run is, and by what each session computes it."""
        earlier = self._described()["sessions"] if resume else []
        run = {**described, "sessions": [*earlier, session]}
        replace_file(self.description, to_json(run))

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


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Clauses that say what differs between two runs."""
    found = differences(before["configuration"], now["configuration"], ignore=_IMMATERIAL)
    old, new = before["store"]["checksum"], now["store"]["checksum"]
    if old != new:
        found.append(f"the store has the checksum {new}, was {old}, with other recordings in it")
    return found
