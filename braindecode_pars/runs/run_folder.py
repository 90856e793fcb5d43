"""Folder of a pretraining run: files, lock, checks before a run starts or resumes, checkpoints.

A checkpoint is one safetensors file with the weights, the moments of the optimizer, and the history
of losses. All random numbers depend only on the seed and on the number of the step. Therefore, a
resumed run uses the same random numbers as an uninterrupted run.
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

#: Settings that may be changed when a run is resumed.
_MAY_DIFFER = ("device", "num_workers")

#: Settings that did not exist in version 0.2.0 of the package, with the values to assume for runs
#: of this version.
_ADDED_SETTINGS: dict[str, Any] = dict(max_steps=None, minutes=None, sham=False)

#: Number of checkpoints that a run keeps. If the newest is damaged, the previous one is used.
N_CHECKPOINTS = 2

#: Attributes of a checkpoint that are stored in the header of its file.
_METADATA = ("step", "history", "run_id")


class RunFolder:
    """Folder of a pretraining run.

    The folder contains ``run.json``, ``metrics.csv``, ``checkpoints/`` and, at the end of the run,
    the encoder.

    Parameters
    ----------
    path : Path
        Path of the folder.
    described : dict | None
        Description of the run to start or resume: a dict with the entries ``configuration`` and
        ``store``. If None, the folder can only be read.
    resume : bool
        Whether to resume the run in the folder. If False, a new run is started.
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
        """Identifier of the run in the folder (a random text), from ``run.json``."""
        return self._stored()["run_id"]

    def check(self) -> None:
        """Check that the run can be started or resumed in the folder.

        Raises
        ------
        ValueError
            If the folder contains files, but no pretraining run. If a new run would be started, but
            the folder already contains a run with a checkpoint or an encoder. If a run would be
            resumed, but the folder contains no run, or a run with another configuration or store;
            the message lists the differences.
        """
        is_run = self._folder.is_ours
        if self.resume and not is_run:
            raise ValueError(
                f"{self.path} contains no run to resume. Pass the folder of the run, or start a "
                "new run with resume=False."
            )
        self._folder.check()
        before = self._stored() if is_run else {}  # raises an error for files of other programs
        if self.resume:
            self._folder.check_settings(
                _settings_of(before),
                "The default of micro_batch_size depends on the number of processes, which was "
                f"{before['sessions'][0]['processes']} when the run was started.",
            )
        # A new run may replace a run without checkpoints, because such a run has no results.
        elif self.is_finished or any(self.checkpoints.glob("step-*")):
            raise ValueError(
                f"{self.path} already contains a run. Resume this run with resume=True (command "
                "line: --resume), or pass another folder to start a new run."
            )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lock the folder, so that no other run can write to it, and check the folder again.

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
        """Add a session (one call of ``pretrain``) to ``run.json``. For a new run, create the file.

        A session is described by its device, number of processes and versions of packages. The file
        also contains the configuration, the store and the identifier of the run. The identifier is
        random, and is also in the checkpoints, so that checkpoints of another run are detected.

        Warns
        -----
        UserWarning
            If the versions of packages are not the same as in the last session.
        """
        before = self._stored() if self.resume else {"run_id": uuid4().hex, "sessions": []}
        sessions = [*before["sessions"], session]
        versions = [entry.get("versions", {}) for entry in sessions[-2:]]
        if changed := files.changed_settings(versions[0], versions[-1]):
            checks.warn_user(
                "The versions of some packages have changed since the last session of this run: "
                f"{'; '.join(changed)}. The result may differ from that of an uninterrupted run. "
                "To avoid this, install the earlier versions before you resume the run."
            )
        run = {"run_id": before["run_id"], **self.described, "sessions": sessions}
        files.replace_file(self.description, files.to_json(run))

    def _stored(self) -> dict[str, Any]:
        """Return the content of ``run.json``.

        Raises
        ------
        ValueError
            If the file is damaged, or does not describe a run.
        """
        run = files.read_json(self.description)
        if not {"run_id", "configuration", "store", "sessions"} <= {*run}:
            raise ValueError(
                f"{self.description} does not describe a pretraining run: entries are missing. "
                "Start a new run in another folder."
            )
        return run

    def newest(self) -> "Checkpoint | None":
        """Return the newest valid checkpoint of the run, or None if there is no checkpoint.

        Raises
        ------
        ValueError
            If there are checkpoints, but none of them is valid.

        Warns
        -----
        UserWarning
            If an older checkpoint is returned, because newer checkpoints are damaged or belong to
            another run. The message names the files of the newer checkpoints and the reasons.
        """
        problems = []
        for file in _newest_first(self.checkpoints):
            try:
                checkpoint = Checkpoint.read(file)
                if checkpoint.run_id != self.run_id:
                    raise ValueError(f"The checkpoint {file} belongs to another run.")
            except ValueError as error:
                problems.append(str(error))
                continue
            if problems:
                checks.warn_user(
                    f"{' '.join(problems)} The run resumes from the older checkpoint {file.name}."
                )
            return checkpoint
        if problems:
            raise ValueError(
                f"The run cannot be resumed, because no checkpoint is valid. {' '.join(problems)} "
                "Start a new run in another folder."
            )
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
        History of skorch (losses and durations), with one row per epoch. Results of single batches
        are not included.
    tensors : dict of str to Tensor
        Weights of the pretext task (``module.*``) and moments of the optimizer (``optimizer.*``).
    run_id : str
        Identifier of the run.
    source : Path | None
        File from which the checkpoint was read. None if it was not read from a file.
    """

    step: int
    history: list[dict[str, Any]]
    tensors: dict[str, torch.Tensor]
    run_id: str
    source: Path | None = None

    @classmethod
    def of(cls, net: NeuralNet, step: int, run_id: str) -> Self:
        """Return the current state of a net as a checkpoint.

        Parameters
        ----------
        net : NeuralNet
            Net that trains the pretext task.
        step : int
            Number of completed steps.
        run_id : str
            Identifier of the run.
        """
        # Weights. A tensor that has several names in the task is stored once.
        weights = net.task_.state_dict()
        tensors = {f"module.{name}": weights[name] for name in _first_names(net.task_).values()}

        # Moments of the optimizer, by parameter name.
        names = {parameter: name for name, parameter in net.task_.named_parameters()}
        for parameter, state in net.optimizer_.state.items():
            tensors |= {f"optimizer.{key}.{names[parameter]}": t for key, t in state.items()}
        return cls(step, [dict(row) for row in net.history], tensors, run_id)

    def write(self, folder: Path) -> None:
        """Write the file ``step-XXXXXXXX.safetensors``, and remove older checkpoints.

        :data:`N_CHECKPOINTS` checkpoints remain, including the new one. If the run was resumed from
        an older checkpoint because later checkpoints were invalid, the invalid files remain until
        the run reaches their steps and replaces them.

        Parameters
        ----------
        folder : Path
            Folder of the checkpoints.

        Raises
        ------
        ValueError
            If a tensor contains NaN or infinite values. The run could not be resumed from such a
            checkpoint.
        """
        tensors = {name: t.detach().cpu().contiguous() for name, t in self.tensors.items()}
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise ValueError(
                    f"Training diverged: {name} contains NaN or infinite values after step "
                    f"{self.step}. Decrease the learning rate (lr)."
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

        Returns
        -------
        Checkpoint
            State of the run at the checkpoint.

        Raises
        ------
        ValueError
            If the file is damaged, or was modified or renamed after it was written.
        """
        try:
            with safetensors.safe_open(file, framework="pt") as content:
                header = content.metadata()
                # safetensors maps the file into memory. Copy the tensors, because a mapped file
                # cannot be removed on Windows.
                tensors = {name: content.get_tensor(name).clone() for name in content.keys()}  # noqa: SIM118
            metadata = files.parse_json(header["run"])
            if header["checksum"] != _checksum(header["run"], tensors):
                raise ValueError(
                    "it does not match its checksum, so it was modified after it was written"
                )
            if file.name != (written := _FILE_NAME.format(metadata["step"])):
                raise ValueError(f"the file was renamed; its original name is {written}")
            attributes = {name: metadata[name] for name in _METADATA}
            return cls(**attributes, tensors=tensors, source=file)
        except (safetensors.SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise ValueError(f"Cannot resume from invalid checkpoint {file}: {error}.") from error

    def restore(self, net: NeuralNet) -> None:
        """Set the weights, history and optimizer of an initialized net to the stored state."""
        self.restore_weights(net.task_)
        net.history_.extend(dict(row) for row in self.history)

        # Moments of the optimizer for each parameter. In the state_dict of the optimizer,
        # parameters are numbered in the order of the parameter groups. Checkpoints do not contain
        # these groups, because learning rate and weight decay are part of the configuration.
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
        """Set the weights of a pretext task to the stored weights."""
        # A tensor that has several names in the task is stored under the first name.
        weights = self._of("module")
        for name, first in _first_names(task).items():
            weights[name] = weights[first]
        model_files.load_tensors(task, weights, self.source)

    def _of(self, part: str) -> dict[str, torch.Tensor]:
        prefix = f"{part}."
        return {n.removeprefix(prefix): t for n, t in self.tensors.items() if n.startswith(prefix)}


def _checksum(run: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Return one checksum of the metadata and of the name, dtype, shape and content of tensors."""
    described = []
    for name, tensor in sorted(tensors.items()):
        content = files.checksum_of(tensor.reshape(-1).view(torch.uint8).numpy())
        described.append([name, str(tensor.dtype), list(tensor.shape), content])
    return files.checksum_of(json.dumps([run, described]).encode())


def _first_names(module: torch.nn.Module) -> dict[str, str]:
    """Return a dict that maps each name of a tensor to the first name of the same tensor.

    A tensor has several names if pretext tasks share an encoder, for example in ``Joint``.
    """
    first: dict[int, str] = {}
    tensors = module.state_dict(keep_vars=True)
    return {name: first.setdefault(id(tensor), name) for name, tensor in tensors.items()}


#: File name of a checkpoint. The number is the number of completed steps.
_FILE_NAME = "step-{:08d}.safetensors"


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
