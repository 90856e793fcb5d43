"""Read and write datasets of braindecode as Zarr folders, without a network.

``push_to_hub`` of braindecode writes a dataset as a Zarr folder, and uploads it to the Hugging Face
Hub. This module calls the same functions of braindecode for folders on disk.
"""

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import pandas as pd
from braindecode.datasets import BaseConcatDataset

from braindecode_pars._common import files, names
from braindecode_pars.windows.preprocessing import AS_RECORDED, Preprocessing

#: File in the folders that ``push_to_hub`` writes, and the Zarr folders in them.
_MARK, _PLACES = "format_info.json", ("*/*/dataset.zarr", "dataset.zarr")
_TYPES = ("RawDataset", "EEGWindowsDataset", "WindowsDataset")


def find_zarr(folder: Path) -> Path | None:
    """Return the Zarr folder of a dataset: the folder itself, or a folder in a download of the Hub.

    None if the folder is neither a Zarr group nor such a download.
    """
    inside: list[Path] = []
    if (folder / _MARK).is_file():
        inside = [path for place in _PLACES for path in sorted(folder.glob(place))]
    return next((path for path in (folder, *inside) if (path / "zarr.json").is_file()), None)


def read_zarr(folder: Path, *, preload: bool) -> BaseConcatDataset:
    """Read a dataset that braindecode wrote.

    Parameters
    ----------
    folder : Path
        Zarr folder, from :func:`find_zarr`.
    preload : bool
        Whether to read all samples into memory. If False, braindecode writes them uncompressed to a
        hidden folder next to ``folder`` and maps them into memory.

    Raises
    ------
    ImportError
        If the package zarr is missing.
    ValueError
        If braindecode did not write the folder.
    """
    names.extra_module("zarr")
    content = files.parse_json((folder / "zarr.json").read_bytes())
    kind = content.get("attributes", {}).get("dataset_type")
    if kind not in _TYPES:
        raise ValueError(
            f"{folder} is a Zarr folder, but not a dataset of braindecode: its attribute "
            f"dataset_type is {kind!r}, expected one of {', '.join(_TYPES)}. Write it with "
            "push_to_hub(local_cache_dir=...) of braindecode or with SignalStore.to_zarr."
        )
    with mne.use_log_level("error"):
        dataset = BaseConcatDataset._load_from_zarr_inline(folder, preload)
        for part in dataset.datasets:
            # The MNE object is created, and MNE logs this, on first access.
            getattr(part, "windows" if kind == "WindowsDataset" else "raw")
    return dataset


def write_zarr(dataset: BaseConcatDataset, folder: Path, known: Preprocessing) -> None:
    """Write a dataset as a Zarr folder. See :meth:`SignalStore.to_zarr`."""
    for package in ("zarr", "huggingface_hub"):  # braindecode requires both
        names.extra_module(package)
    if folder.exists():
        raise FileExistsError(f"{folder} already exists. Pass a new folder.")
    for part in dataset.datasets:
        part.raw_preproc_kwargs = [*_steps_of(known)]
        _check_labels(getattr(part, "metadata", None))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        written = Path(temporary, folder.name)
        dataset._convert_to_zarr_inline(written, compression="blosc", compression_level=5)
        written.rename(folder)  # an interrupted call leaves no incomplete dataset


def _steps_of(known: Preprocessing) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield steps from which :func:`~.recorded_steps.recorded` returns a preprocessing."""
    steps: list[tuple[str, dict[str, Any]]] = []
    if known.band not in (None, (None, None)):
        low, high = known.band
        steps.append(("filter", dict(l_freq=low, h_freq=high, method=known.filter or "fir")))
    if known.notch:
        steps.append(("notch_filter", dict(freqs=[*known.notch])))
    if known.reference not in (None, AS_RECORDED):
        steps.append(("set_eeg_reference", dict(ref_channels=known.reference)))
    if known.scale is not None:
        steps.append(("rescale", dict(scalings=known.scale)))
    is_unknown = None in (known.band, known.notch, known.reference, known.scale)
    if is_unknown and (steps or known.reference is None):
        steps.append(("unknown", {}))  # otherwise, entries without a step would be "none"
    return steps


def _check_labels(metadata: pd.DataFrame | None) -> None:
    """Check that labels are read as they were written: the table does not contain their type."""
    labels = [] if metadata is None else metadata["target"].tolist()
    table = pd.Series(labels, name="target").to_csv(sep="\t")
    for label, read in zip(
        labels, pd.read_csv(io.StringIO(table), sep="\t")["target"], strict=True
    ):
        if isinstance(label, str) and label != read:
            raise ValueError(
                f"The label {label!r} would be read as {read!r}, because braindecode stores labels "
                "as text. Use integers, or names that are neither numbers nor missing values."
            )
