"""Labels in the names of files, by a template or a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from braindecode_pars._subjects import normalized, without_ending
from braindecode_pars.recordings._file_labels import FileLabels, Stretch

__all__ = ["is_name_pattern", "labels_in_names"]

_FIELDS = ("label", "subject")
_NAMED_GROUP = "(?P<"


def is_name_pattern(text: str) -> bool:
    """Return whether a text is a template or a regular expression of names.

    Examples
    --------
    >>> from braindecode_pars.recordings._name_labels import is_name_pattern
    >>> is_name_pattern("{subject}_{label}"), is_name_pattern("labels.csv")
    (True, False)
    """
    return "{" in text or _NAMED_GROUP in text


def labels_in_names(pattern: str, root: Path, files: Sequence[Path]) -> dict[Path, FileLabels]:
    """Return the label of each file, of the whole recording, and its subject.

    Parameters
    ----------
    pattern : str
        Template of the names without their ending, such as ``"{subject}_{label}"``, in which ``*``
        stands for any text; one with "/" is a template of the path below the folder. Or a regular
        expression with the named group ``label``, and perhaps ``subject``, that is searched for in
        this path.
    root : Path
        Folder of all recordings.
    files : list of Path
        The recordings.

    Returns
    -------
    dict of Path to FileLabels
        Labels of all files.

    Raises
    ------
    ValueError
        When the pattern is not valid, does not match a name, or matches it in two ways.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings._name_labels import labels_in_names
    >>> file = Path("data", "Subject00_1.edf")
    >>> labels_in_names("{subject}_{label}", Path("data"), [file])[file]
    FileLabels(stretches=(Stretch(onset=None, duration=None, label='1'),), subject='Subject00')
    """
    read = _expression(pattern) if _NAMED_GROUP in pattern else _template(pattern)
    found = {}
    for file in files:
        read_fields = read(file.relative_to(root)).items()
        fields = {name: (text or "").strip() for name, text in read_fields}
        missing = [name for name in _FIELDS if not fields.get(name, name == "subject")]
        if missing:
            raise ValueError(
                f"{file} has no {missing[0]}: labels={pattern!r} does not match its name; change "
                "the pattern, or move the file out of the folder."
            )
        found[file] = FileLabels((Stretch(None, None, fields["label"]),), fields.get("subject"))
    return found


def _expression(pattern: str) -> Callable[[PurePath], dict[str, str]]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"labels={pattern!r} is not a regular expression: {error}.") from error
    if "label" not in expression.groupindex:
        raise ValueError(f"labels={pattern!r} has no group (?P<label>...) around the label.")

    def read(path: PurePath) -> dict[str, str]:
        found = expression.search(normalized(path.as_posix()))
        return found.groupdict() if found else {}

    return read


def _template(pattern: str) -> Callable[[PurePath], dict[str, str]]:
    parts = re.split(r"(\{.*?\}|\*)", pattern)
    fields = [part[1:-1] for part in parts if part.startswith("{")]
    if "label" not in fields or len(set(fields)) < len(fields) or not {*fields} <= {*_FIELDS}:
        raise ValueError(
            f"labels={pattern!r} is no template of names; it needs the field {{label}} once, may "
            "have {subject} once, and * for any text, as in '{subject}_{label}'."
        )
    # A name that the longest and the shortest fields match differently can be read in two ways.
    longest, shortest = (_compiled(parts, more) for more in ("+", "+?"))

    def read(path: PurePath) -> dict[str, str]:
        stem = without_ending(normalized(path.as_posix()))
        name = stem if "/" in pattern else stem.rpartition("/")[2]
        found, other = longest.fullmatch(name), shortest.fullmatch(name)
        if found is None or other is None:
            return {}
        unclear = [field for field in _FIELDS if field in fields and found[field] != other[field]]
        if unclear:
            field = unclear[0]
            raise ValueError(
                f"The {field} of {path} may be {other[field]!r} or {found[field]!r} by "
                f"labels={pattern!r}; pass a regular expression, such as "
                "'(?P<subject>[^/_]+)_(?P<label>[^/.]+)'."
            )
        return found.groupdict()

    return read


def _compiled(parts: Sequence[str], more: str) -> re.Pattern[str]:
    written = {"*": f"(?:[^/]{more})?"}
    written |= {f"{{{field}}}": f"(?P<{field}>[^/]{more})" for field in _FIELDS}
    return re.compile("".join(written.get(part, re.escape(part)) for part in parts))
