"""The folder of a run: its files, its lock, and the check before a run starts or resumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from torch import nn

from braindecode_pars.runs._checkpoint import Checkpoint, newest_checkpoint
from braindecode_pars.runs._config import RunConfig
from braindecode_pars.storage._atomic import locked, remove_leftovers, replace_file
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import read_json, to_json
from braindecode_pars.storage._model_folder import ENCODER, FILES
from braindecode_pars.storage._settings import differences

__all__ = ["RunFolder"]

#: Settings that may differ when a run is resumed.
_MAY_DIFFER = ("device", "num_workers")

#: Settings that version 0.1.0 did not have, with the values that its runs had.
_SINCE_0_1_0 = {"tokenizer": "linear", "encoder": None}


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run.

    It has ``run.json``, ``metrics.csv``, ``checkpoints/``, ``tensorboard/`` and, at the end, the
    encoder.
    """

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
        return all((self.path / name).exists() for name in FILES[ENCODER])

    @property
    def run_id(self) -> str | None:
        """Identity of the run in the folder; None if version 0.1.0 started it."""
        return self._described().get("run_id")

    def finished_configuration(self) -> RunConfig:
        """Return the configuration of the finished run in the folder.

        Raises
        ------
        FileNotFoundError
            When the folder has no run.
        ValueError
            When the run is not finished, or ``run.json`` is damaged.
        """
        if not self.description.is_file():
            raise FileNotFoundError(
                f"{self.path} is not the folder of a run: it has no {self.description.name}."
            )
        if not self.is_finished:
            raise ValueError(f"The run in {self.path} is not finished; resume it first.")
        try:
            return RunConfig(**{**_SINCE_0_1_0, **self._described()["configuration"]})
        except (TypeError, ValueError) as error:  # a setting of a newer version, or not accepted
            raise ValueError(f"{self.description} does not describe a run: {error}") from error

    def check(self, described: Mapping[str, Any], *, resume: bool) -> None:
        """Check that a run can start or resume in the folder.

        Parameters
        ----------
        described : dict
            ``configuration`` and ``store`` of the new run.
        resume : bool
            Whether the run continues the one in the folder.

        Raises
        ------
        ValueError
            When the folder has other files. Without ``resume``, when it has a run. With
            ``resume``, when it has no run, or a run with another configuration; the message names
            every difference.
        """
        # Only an empty folder or the folder of a run is accepted.
        is_run = self.description.is_file()
        if resume and not is_run:
            raise ValueError(f"{self.path} has no run to resume; start a run without resume.")
        check_may_write(self.path, "a run", is_ours=is_run)
        before = self._described() if is_run else {}  # another program may have written run.json

        # A run without checkpoints has no results, so a new run may replace it.
        has_results = self.is_finished or any(self.checkpoints.glob("step-*"))
        if not resume and has_results:
            raise ValueError(f"{self.path} already has a run: resume it, or name another folder.")

        # A resumed run must have the same configuration and the same data.
        if resume:
            found = _differences(before, described)
            if found:
                processes = before["sessions"][0]["processes"]
                raise ValueError(
                    f"{self.path} has a run with another configuration: {'; '.join(found)}. Use "
                    "the same configuration to resume it, or name another folder. (The run was "
                    f"started on {processes} process{'es' if processes > 1 else ''}. The default "
                    "of micro_batch_size depends on the number of processes.)"
                )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the folder against other runs.

        Raises
        ------
        BlockingIOError
            When another process writes to the folder.
        """
        message = f"Another run is writing to {self.path}; wait until it has ended."
        with locked(self.path, message):
            for folder in (self.path, self.checkpoints):
                remove_leftovers(folder)
            yield

    def begin_session(
        self, described: Mapping[str, Any], session: Mapping[str, Any], *, resume: bool
    ) -> None:
        """Write ``run.json``: identity, configuration and store of the run, and all its sessions.

        The identity is random. The checkpoints of the run carry it, so that one of another run is
        noticed. A session is one call of ``pretrain``, with its device, processes and versions.
        """
        before = self._described() if resume else {"run_id": uuid4().hex, "sessions": []}
        run = {"run_id": before.get("run_id"), **described}
        run["sessions"] = [*before["sessions"], session]
        replace_file(self.description, to_json(run))

    def _described(self) -> dict[str, Any]:
        """Return the content of ``run.json``.

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
                f"{self.description} does not describe a run ({error!r}); restore the file, or "
                "name another folder."
            ) from error
        return run

    def newest(self, task: nn.Module) -> Checkpoint | None:
        """Return the newest checkpoint of this run, as ``newest_checkpoint`` does."""
        return newest_checkpoint(self.checkpoints, task, self.run_id)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two runs, one clause each."""
    configuration = {**_SINCE_0_1_0, **before["configuration"]}
    found = differences(configuration, now["configuration"], ignore=_MAY_DIFFER)
    old, new = before["store"]["checksum"], now["store"]["checksum"]
    if old != new:
        found.append(f"the store has other recordings: its checksum is {new}, was {old}")
    return found
