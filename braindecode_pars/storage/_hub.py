"""Folder of a pretrained model: local, in the package, on the Hub, or uploaded to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from braindecode_pars.storage._model_folder import FILES as FILES_OF_KINDS
from braindecode_pars.storage._packaged import ALIASES, packaged_folder, packaged_names

__all__ = ["model_folder", "upload_folder"]

PREFIX = "hf://"
FILES = ["*.json", "*.safetensors"]
README = "README.md"
#: Files of a model of any kind. Those of an earlier model are deleted: they may have names.
_OF_MODELS = sorted({name for files in FILES_OF_KINDS.values() for name in files})
_REPO_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def model_folder(source: str | Path, *, download: bool = False, **options: Any) -> Path:
    """Return the folder of a pretrained model; download the model if requested.

    Parameters
    ----------
    source : str | Path
        Path of a folder, name of an encoder in the package, or name of a model on the Hugging Face
        Hub. An existing folder wins. ``"hf://owner/name"`` and ``"hf://owner/name@revision"`` are
        downloaded unless they are in the local cache of the Hub. ``"owner/name"`` is searched for
        in this cache only.
    download : bool
        Whether ``"owner/name"`` is downloaded too.
    **options
        Options of ``huggingface_hub.snapshot_download``, such as ``revision`` or ``cache_dir``.

    Returns
    -------
    Path
        An existing folder.

    Raises
    ------
    FileNotFoundError
        When the folder or model does not exist, or cannot be downloaded. For a name that may be
        one of the package, the message lists those.
    ImportError
        When a download is requested and ``huggingface_hub`` is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.storage._hub import model_folder
    >>> model_folder(".") == Path(".")
    True
    >>> model_folder("hf://owner/name@main")  # doctest: +SKIP
    """
    # A folder is returned as it is.
    folder = Path(source).expanduser()
    # Only a string is a name; a Path is the user's own.
    packaged = packaged_folder(source) if isinstance(source, str) else None
    if folder.is_dir() and (packaged is None or _has_model(folder)):
        return folder
    if packaged is not None:
        return packaged
    if folder.exists():
        raise FileNotFoundError(f"{source} is a file; pass the folder that contains it.")
    # Anything else may be the name of a model on the Hub.
    name = str(source)
    download = download or name.startswith(PREFIX)
    repo_id, _, revision = name.removeprefix(PREFIX).partition("@")
    if not _REPO_ID.fullmatch(repo_id):
        raise FileNotFoundError(
            f"{source} is not the folder of a saved model: the folder does not exist."
            + (f" {_known_names()}" if folder.name == source else "")
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
        raise FileNotFoundError(f"{source} is not the folder of a saved model.") from None
    # Without a download, the model must be in the local cache of the Hub.
    try:
        found = snapshot_download(repo_id, allow_patterns=FILES, **options)
    except Exception as error:  # the Hub and the network raise many types of errors
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileNotFoundError(
            f"{source} could not be downloaded: {reason}"
            if download
            else f"{source} is neither the folder of a saved model nor a downloaded model "
            f"of the Hugging Face Hub; to download it, pass {PREFIX}{source}."
        ) from error
    return Path(found)


def upload_folder(
    folder: Path,
    repo_id: str,
    *,
    private: bool,
    names_people: bool,
    commit_message: str,
    token: str | None = None,
    revision: str | None = None,
) -> str:
    """Upload the folder of a model to the Hub, and create the repository if it does not exist.

    A model of another kind in the repository is deleted.

    Parameters
    ----------
    folder : Path
        Folder with a model and its ``README.md``.
    repo_id : str
        Repository, ``"owner/name"``.
    private : bool
        Whether a new repository is private.
    names_people : bool
        Whether the model has names of subjects. It is then not uploaded to a public repository.
    commit_message, token, revision
        As in ``huggingface_hub.HfApi.upload_folder``.

    Returns
    -------
    str
        URL of the commit.

    Raises
    ------
    ImportError
        When ``huggingface_hub`` is not installed.
    ValueError
        When the name of the repository is not valid, or the model names subjects and the repository
        is public.
    OSError
        When the Hub refuses, or cannot be reached.
    """
    if not _REPO_ID.fullmatch(repo_id):
        raise ValueError(f"repo_id must be of the form 'owner/name', got {repo_id!r}.")
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise ImportError(
            "push_to_hub needs huggingface_hub; install it with: pip install huggingface_hub"
        ) from error
    hub = HfApi(token=token)
    try:
        hub.create_repo(repo_id, private=private, exist_ok=True)
        is_public = not hub.repo_info(repo_id).private
        if not (names_people and is_public):
            # The README of an existing repository is the user's own.
            known = hub.file_exists(repo_id, README, revision=revision)
            commit = hub.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                allow_patterns=FILES if known else [*FILES, README],
                delete_patterns=_OF_MODELS,
                commit_message=commit_message,
                revision=revision,
            )
            return str(commit.commit_url)
    except Exception as error:  # the Hub and the network raise many types of errors
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise OSError(f"{repo_id} could not be uploaded: {reason}") from error
    raise ValueError(
        f"{repo_id} is a public repository, and share=False would upload the names of subjects to "
        "it; pass share=True."
    )


def _known_names() -> str:
    """List the encoders in the package, with their aliases."""
    known = packaged_names()
    if not known:
        return "This installation has no encoders of the package."
    known = sorted({*known, *(alias for alias, name in ALIASES.items() if name in known)})
    return f"The encoders in the package are {', '.join(map(repr, known))}."


def _has_model(folder: Path) -> bool:
    """Whether a folder has a model, or will have one at the end of a run."""
    return any(folder.glob("*.safetensors")) or (folder / "run.json").is_file()
