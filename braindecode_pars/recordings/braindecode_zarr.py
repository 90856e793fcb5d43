"""Read and write datasets of braindecode as Zarr folders on disk, without a network connection.

The method ``push_to_hub`` of braindecode writes a dataset as a Zarr folder, and uploads this folder
to the Hugging Face Hub. This module uses the same functions of braindecode without the upload.
"""

import atexit
import io
import shutil
import tempfile
from pathlib import Path

import mne
import pandas as pd
from braindecode.datasets import BaseConcatDataset

from braindecode_pars._common import names


def is_zarr(folder: Path) -> bool:
    """Return whether a folder is a dataset that braindecode wrote in Zarr format."""
    file = folder / "zarr.json"
    return file.is_file() and '"dataset_type"' in file.read_text()


def read_zarr(folder: Path) -> BaseConcatDataset:
    """Read a dataset that braindecode wrote in Zarr format.

    To read the dataset, braindecode writes the uncompressed samples to a temporary folder and maps
    them into memory. The temporary folder is removed when Python exits.

    Raises
    ------
    ImportError
        If the package zarr is not installed.
    """
    names.extra_module("zarr")
    # braindecode writes the uncompressed copy next to the Zarr folder, and reuses an existing copy
    # even if the dataset was replaced. Therefore, braindecode gets a link in a new folder.
    temporary = tempfile.mkdtemp(prefix="braindecode-pars-zarr-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    link = Path(temporary, "dataset.zarr")
    link.symlink_to(folder.absolute())
    with mne.use_log_level("error"):
        dataset = BaseConcatDataset._load_from_zarr_inline(link, preload=False)
        for part in dataset.datasets:
            getattr(part, "raw", None)  # creates the MNE object, which MNE logs
    return dataset


def write_zarr(dataset: BaseConcatDataset, folder: Path) -> None:
    """Write a dataset as a Zarr folder. See :meth:`SignalStore.to_zarr`."""
    for package in ("zarr", "huggingface_hub"):  # braindecode requires both
        names.extra_module(package)
    if folder.exists():
        raise FileExistsError(f"{folder} already exists. Pass a folder that does not exist yet.")
    for part in dataset.datasets:
        # A step with an unknown effect, because signals without steps count as not preprocessed
        part.raw_preproc_kwargs = [("unknown", {})]
        table = getattr(part, "metadata", pd.DataFrame(columns=["target"]))
        labels = table[["target"]].reset_index(drop=True)
        read = pd.read_csv(io.StringIO(labels.to_csv(index=False)))
        is_text = labels.map(lambda label: isinstance(label, str))
        if (is_text & (read != labels)).any(axis=None):
            raise ValueError(
                "braindecode stores labels as text, and would read at least one of the class names "
                "in the dataset back as a number, a boolean or a missing value. Use integer "
                "labels, or class names that do not look like a number, 'True' or 'NA'."
            )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        written = Path(temporary, folder.name)
        dataset._convert_to_zarr_inline(written, compression="blosc", compression_level=5)
        written.rename(folder)  # an interrupted call leaves no incomplete dataset
