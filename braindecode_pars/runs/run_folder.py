"""Folder of a run: files, lock, checks before a run starts or resumes, and checkpoints.

A checkpoint contains the weights, the moments of the optimizer and the history in one safetensors
file. All random draws depend only on the seed and the step, so a resumed run is bit-identical.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import safetensors.torch
import torch
from skorch import NeuralNet

from braindecode_pars._common import checks, files, model_files
from braindecode_pars._common.results_folder import ResultsFolder

#: Settings that may differ when a run is resumed.
_MAY_DIFFER = ("device", "num_workers")

#: Settings that run.json of version 0.2.0 does not contain, with their values in these runs.
_ADDED_SETTINGS: dict[str, Any] = dict(max_steps=None, minutes=None, sham=False)

#: Number of checkpoints of a run. The previous checkpoint is used if the newest is damaged.
N_CHECKPOINTS = 2

#: Attributes of a checkpoint in the header of its file.
_METADATA = ("step", "history", "run_id")


class RunFolder:
    """Folder of a pretraining run.

    It contains ``run.json``, ``metrics.csv``, ``checkpoints/`` and, at the end of the run, the
    encoder.

    Parameters
    ----------
    path : Path
        The folder.
    described : dict | None
        Dict with the entries ``configuration`` and ``store`` of the run to start or resume. None
        to read an earlier run.
    resume : bool
        Whether to resume the run in the folder.
    """

    def __init__(
        self, path: Path, described: Mapping[str, Any] | None = None, *, resume: bool = False
    ):
        self.path = path
        self.described = described or {}
        self.resume = resume
        self.description = path / "run.json"
        self.metrics = path / "metrics.csv"
        self.checkpoints = path / "checkpoints"
        settings = _settings_of(described) if described else {}
        marks = (self.description.name,)
        self._folder = ResultsFolder(path, "a run", settings, marks=marks, may_differ=_MAY_DIFFER)

    @property
    def is_finished(self) -> bool:
        names = model_files.MODEL_FILES[model_files.ENCODER]
        return all((self.path / name).exists() for name in names)

    @property
    def run_id(self) -> str:
        """Identifier of the run in the folder."""
        return self._stored()["run_id"]

    def check(self) -> None:
        """Check that the run can start or resume in the folder.

        Raises
        ------
        ValueError
            If the folder contains other files. Without ``resume``, if it contains a run. With
            ``resume``, if it contains no run, or a run with a different configuration; the
            message contains the differences.
        """
        is_run = self._folder.is_ours
        if self.resume and not is_run:
            raise ValueError(
                f"{self.path} contains no run to resume. Start a new run with resume=False."
            )
        self._folder.check()
        before = self._stored() if is_run else {}  # refuses run.json of another program
        if self.resume:
            self._folder.check_settings(
                _settings_of(before),
                "The default of micro_batch_size depends on the number of processes, which was "
                f"{before['sessions'][0]['processes']}.",
            )
        # A run without checkpoints has no results, so a new run may replace it.
        elif self.is_finished or any(self.checkpoints.glob("step-*")):
            raise ValueError(
                f"{self.path} already contains a run. Resume the run, or pass another folder."
            )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lock the folder against other runs, and check it again.

        Raises
        ------
        BlockingIOError
            If another process writes to the folder.
        ValueError
            See :meth:`check`.
        """
        with self._folder.opened():
            self.check()  # another run may have written to the folder in the meantime
            yield

    def begin_session(self, session: Mapping[str, Any]) -> None:
        """Write ``run.json``: identifier, configuration and store of the run, and its sessions.

        The identifier is random. The checkpoints contain it, so that a checkpoint of another run is
        detected. A session is one call of ``pretrain``, with its device, processes and versions.

        Warns
        -----
        UserWarning
            If versions of packages differ from the last session.
        """
        before = self._stored() if self.resume else {"run_id": uuid4().hex, "sessions": []}
        versions = [entry.get("versions", {}) for entry in (*before["sessions"][-1:], session)]
        if changed := files.changed_settings(versions[0], versions[-1]):
            checks.warn_user(
                f"The run is resumed with different versions of packages: {'; '.join(changed)}. "
                "The result may differ from an uninterrupted run. To avoid this, install the "
                "earlier versions."
            )
        run = {"run_id": before["run_id"], **self.described}
        run["sessions"] = [*before["sessions"], session]
        files.replace_file(self.description, files.to_json(run))

    def _stored(self) -> dict[str, Any]:
        """Return the content of ``run.json``.

        Raises
        ------
        ValueError
            If the file is damaged.
        """
        run = files.read_json(self.description)
        if not {"run_id", "configuration", "store", "sessions"} <= {*run}:
            raise ValueError(f"{self.description} is not a description of a run. Start a new run.")
        return run

    def newest(self) -> "Checkpoint | None":
        """Return the newest valid checkpoint of the run, or None if there is no checkpoint.

        Raises
        ------
        ValueError
            If there are checkpoints, but none is valid.

        Warns
        -----
        UserWarning
            If a newer checkpoint is damaged, or belongs to another run. The message contains the
            file and the reason.
        """
        problems = []
        for file in _newest_first(self.checkpoints):
            try:
                checkpoint = Checkpoint.read(file)
                if checkpoint.run_id != self.run_id:
                    raise ValueError(f"{file} belongs to another run.")
            except ValueError as error:
                problems.append(str(error))
                continue
            if problems:
                checks.warn_user(f"{' '.join(problems)} Resuming from {file.name} instead.")
            return checkpoint
        if problems:
            raise ValueError(f"No checkpoint is valid: {' '.join(problems)} Start a new run.")
        return None


def _settings_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a run, and the checksum of its store."""
    checksum = {"checksum of the store": described["store"]["checksum"]}
    return _ADDED_SETTINGS | described["configuration"] | checksum


@dataclass(frozen=True)
class Checkpoint:
    """State of a run after an epoch.

    Attributes
    ----------
    step : int
        Number of completed steps.
    history : list of dict
        History of skorch: one row per epoch, without the results of batches.
    tensors : dict of str to Tensor
        Tensors named ``module.*`` and ``optimizer.*``.
    run_id : str
        Identifier of the run.
    source : Path | None
        File from which the checkpoint was read.
    """

    step: int
    history: list[dict[str, Any]]
    tensors: dict[str, torch.Tensor]
    run_id: str
    source: Path | None = None

    @classmethod
    def of(cls, net: NeuralNet, step: int, run_id: str) -> Self:
        """Return the current state of a net as a checkpoint."""
        # Weights. A tensor with several names is stored once.
        weights = net.task_.state_dict()
        tensors = {f"module.{name}": weights[name] for name in _first_names(net.task_).values()}

        # Moments of the optimizer, by parameter name.
        names = {parameter: name for name, parameter in net.task_.named_parameters()}
        for parameter, state in net.optimizer_.state.items():
            tensors |= {f"optimizer.{key}.{names[parameter]}": t for key, t in state.items()}
        return cls(step, [dict(row) for row in net.history], tensors, run_id)

    def write(self, folder: Path) -> None:
        """Write ``step-XXXXXXXX.safetensors``, and remove older checkpoints.

        :data:`N_CHECKPOINTS` checkpoints remain, including this one. Unusable files of later steps
        remain until the run reaches these steps and replaces them.

        Raises
        ------
        ValueError
            If a tensor is not finite, so that the run could not resume from this checkpoint.
        """
        tensors = {name: t.detach().cpu().contiguous() for name, t in self.tensors.items()}
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise ValueError(
                    f"{name} has NaN or infinite values after step {self.step}. Decrease the "
                    "learning rate."
                )
        run = json.dumps({name: getattr(self, name) for name in _METADATA})
        header = {"run": run, "checksum": _checksum(run, tensors)}
        name = _FILE_NAME.format(self.step)
        files.replace_file(folder / name, safetensors.torch.save(tensors, metadata=header))
        for old in [file for file in _newest_first(folder) if file.name <= name][N_CHECKPOINTS:]:
            old.unlink()

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a checkpoint file.

        Raises
        ------
        ValueError
            If the file is damaged, was edited, or was renamed.
        """
        try:
            with safetensors.safe_open(file, framework="pt") as content:
                header = content.metadata()
                # safetensors maps the file into memory. Copy the tensors, because Windows cannot
                # remove a mapped file.
                tensors = {name: content.get_tensor(name).clone() for name in content.keys()}  # noqa: SIM118
            metadata = files.parse_json(header["run"])
            if header["checksum"] != _checksum(header["run"], tensors):
                raise ValueError("its content does not match its checksum")
            if file.name != (written := _FILE_NAME.format(metadata["step"])):
                raise ValueError(f"it was written as {written}")
            attributes = {name: metadata[name] for name in _METADATA}
            return cls(**attributes, tensors=tensors, source=file)
        except (safetensors.SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise ValueError(f"{file} is damaged or not a checkpoint: {error}.") from error

    def restore(self, net: NeuralNet) -> None:
        """Restore the state of an initialized net."""
        self.restore_weights(net.task_)
        net.history_.extend(dict(row) for row in self.history)

        # Moments of each parameter. Checkpoints do not contain the parameter groups, because
        # learning rate and weight decay are part of the configuration. The state_dict of the
        # optimizer numbers the parameters in the order of its groups.
        names = {parameter: name for name, parameter in net.task_.named_parameters()}
        groups = net.optimizer_.param_groups
        order = [names[parameter] for group in groups for parameter in group["params"]]
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, tensor in self._of("optimizer").items():
            kind, name = key.split(".", 1)
            state.setdefault(order.index(name), {})[kind] = tensor
        groups = net.optimizer_.state_dict()["param_groups"]
        net.optimizer_.load_state_dict({"state": state, "param_groups": groups})

    def restore_weights(self, task: torch.nn.Module) -> None:
        """Restore the weights of a task."""
        # A tensor with several names is stored under its first name.
        weights = self._of("module")
        for name, first in _first_names(task).items():
            weights[name] = weights[first]
        model_files.load_tensors(task, weights, self.source)

    def _of(self, part: str) -> dict[str, torch.Tensor]:
        prefix = f"{part}."
        return {n.removeprefix(prefix): t for n, t in self.tensors.items() if n.startswith(prefix)}


def _checksum(run: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Return a checksum of the metadata, and of name, dtype, shape and content of each tensor."""
    described = []
    for name, tensor in sorted(tensors.items()):
        content = files.checksum_of(tensor.reshape(-1).view(torch.uint8).numpy())
        described.append([name, str(tensor.dtype), list(tensor.shape), content])
    return files.checksum_of(json.dumps([run, described]).encode())


def _first_names(module: torch.nn.Module) -> dict[str, str]:
    """Map each name of a tensor to the first name of the same tensor.

    Tensors of a shared encoder have several names, for example in ``Joint``.
    """
    first: dict[int, str] = {}
    tensors = module.state_dict(keep_vars=True)
    return {name: first.setdefault(id(tensor), name) for name, tensor in tensors.items()}


#: File name of a checkpoint.
_FILE_NAME = "step-{:08d}.safetensors"


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
