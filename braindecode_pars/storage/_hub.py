"""Where a pretrained model's files are: a folder, or a model on the Hugging Face Hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["model_folder"]

PREFIX = "hf://"
FILES = ["*.json", "*.safetensors"]


def model_folder(source: str | Path, *, download: bool = False, **options: Any) -> Path:
    """Find the folder of a pretrained model.

    Parameters
    ----------
    source : str | Path
        A folder; ``"hf://owner/name"`` or ``"hf://owner/name@revision"``, which is downloaded
        from the Hugging Face Hub unless it has been before; or ``"owner/name"``, which is only
        looked for among what has been downloaded before.
    download : bool
        Download ``"owner/name"`` too.
    **options
        Of ``huggingface_hub.snapshot_download``, such as ``revision`` or ``cache_dir``.

    Returns
    -------
    Path
        A folder that exists.

    Raises
    ------
    FileNotFoundError
        When there is no such folder or model.
    ImportError
        When a download is asked for and ``huggingface_hub`` is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.storage._hub import model_folder
    >>> model_folder(".") == Path(".")
    True
    >>> model_folder("hf://owner/name@main")  # doctest: +SKIP
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    if folder.exists():
        raise FileNotFoundError(f"{source} is a file; give the folder it lies in.")
    name = str(source)
    download = download or name.startswith(PREFIX)
    repo_id, _, revision = name.removeprefix(PREFIX).partition("@")
    if not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", repo_id):
        raise FileNotFoundError(
            f"{source} is not the folder of a pretrained encoder: there is no such folder."
        )
    options = {"local_files_only": not download, **options}
    if revision:
        options["revision"] = revision
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        if download:
            raise ImportError(
                f"{source} needs huggingface_hub; install it with: pip install huggingface_hub"
            ) from error
        raise FileNotFoundError(f"{source} is not the folder of a pretrained encoder.") from None
    try:
        found = snapshot_download(repo_id, allow_patterns=FILES, **options)
    except Exception as error:  # of the hub, of the network; many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileNotFoundError(
            f"{source} could not be downloaded: {reason}"
            if download
            else f"{source} is not the folder of a pretrained encoder, nor a model downloaded from "
            f"the Hugging Face Hub before; {PREFIX}{source} downloads it."
        ) from error
    return Path(found)
