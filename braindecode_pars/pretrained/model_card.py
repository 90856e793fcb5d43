"""Model card of a folder for others: ``README.md`` in the format of the Hugging Face Hub.

The card is made of the description in the model file, in which names of people are hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from braindecode_pars._common.files import replace_file
from braindecode_pars._common.model_files import CLASSIFIER, EMBEDDER, ENCODER, write_model
from braindecode_pars._common.subjects import salt_of

README = "README.md"

_USE = {
    CLASSIFIER: (
        "from braindecode_pars import PARSClassifier\n\n"
        'clf = PARSClassifier.from_pretrained("{source}")\n'
        "labels = clf.predict(windows)  # windows prepared as below"
    ),
    EMBEDDER: (
        "from braindecode_pars import PARSClassifier, PARSEmbedder\n\n"
        'vectors = PARSEmbedder.from_pretrained("{source}").transform(windows)\n'
        'clf = PARSClassifier(encoder="{source}").fit(windows)  # fine-tune its encoder'
    ),
    ENCODER: (
        "from braindecode_pars import PARSClassifier\n\n"
        'clf = PARSClassifier(encoder="{source}").fit(windows)  # fine-tune it'
    ),
}
_TASK = {
    CLASSIFIER: "It classifies windows of EEG into {classes}.",
    EMBEDDER: "It embeds windows of EEG: one vector for each, for linear probes and figures.",
    ENCODER: "It encodes single channels of EEG, to be fine-tuned or frozen in a classifier.",
}
#: Licences by the identifiers of the Hub.
_LICENCES = (
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "agpl-3.0"),
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("odc-by", "odbl", "pddl"),
)
_REPO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INTENDED = (
    "Research on EEG. It is not a medical device: base no diagnosis and no decision about a person "
    "on its output."
)
_LIMITS = (
    "- Other amplifiers, montages, references, filters and populations than those of the training "
    "change the scores; measure them on your own held-out subjects.",
    "- Windows must have the sampling rate of the model, and should be prepared as its training "
    "data.",
)
_HASHES = (
    "- Subjects of the training are salted hashes in the model file, so that `braindecode_pars` "
    "warns when one of your test subjects is among them. Whoever has a list of names can try each "
    "of them: the hashes are no anonymisation."
)


def model_card(
    kind: str,
    description: Mapping[str, Any],
    *,
    source: str = "FOLDER",
    licence: str | None = None,
    about: str | None = None,
    scores: pd.DataFrame | None = None,
) -> str:
    """Return the text of a model card.

    Parameters
    ----------
    kind : str
        Kind of the model.
    description : mapping
        Description in the model file.
    source : str
        Where the model can be loaded from, for the example.
    licence : str | None
        Licence of the model. None is that of the card, except for a classifier: the card of its
        encoder does not know it.
    about : str | None
        What the model is for, and what others should know; None is the description of the card.
    scores : DataFrame | None
        Scores of held-out subjects, a row for each method or metric, as from
        :func:`~braindecode_pars.evaluation.summarize`. None states that there are none.

    Returns
    -------
    str
        Markdown with a header in YAML: ``library_name``, ``tags``, ``pipeline_tag`` and
        ``datasets``, and ``license`` where it is known.

    Examples
    --------
    >>> from braindecode_pars.pretrained.model_card import model_card
    >>> described = {"pretraining": {"task": "pars", "sfreq": 100.0, "about": {}}, "encoder": {}}
    >>> print(model_card("PatchEncoder", described).split("---")[1])
    <BLANKLINE>
    library_name: "braindecode_pars"
    tags: ["eeg", "braindecode", "self-supervised-learning", "PatchEncoder", "pars"]
    pipeline_tag: "feature-extraction"
    <BLANKLINE>
    """
    estimator = description.get("classifier") or description.get("embedder") or {}
    card = description.get("pretraining") or estimator.get("pretraining") or {}
    facts = card.get("about") or {}
    if kind != CLASSIFIER:
        licence = licence or facts.get("licence")
        about = about or facts.get("description")
    sections = {
        "Task": _task(kind, estimator, card),
        "Use": ["```python", _USE[kind].replace("{source}", source), "```"],
        "Data": _data(card, facts),
        "Preprocessing": _preprocessing(description, estimator, card, facts),
        "Scores": _scores(card, scores),
        "Intended use": [_INTENDED],
        "Limits": [*_LIMITS, *([_HASHES] if _has_hashes(card) else [])],
        "Licence": _licence(licence, facts if kind == CLASSIFIER else {}),
    }
    title = f"{kind} for EEG" if kind == CLASSIFIER else facts.get("name") or f"{kind} for EEG"
    text = [_header(kind, card, licence), f"# {title}", *([about] if about else [])]
    for name, lines in sections.items():
        text += [f"## {name}", "\n".join(lines)]
    return "\n\n".join(text) + "\n"


def write_shared(
    folder: Path,
    kind: str,
    description: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    **card: Any,
) -> Path:
    """Write a model for others, with its card; a ``README.md`` in the folder stays as it is.

    Parameters
    ----------
    folder, kind, description, tensors
        As in :func:`~braindecode_pars._common.model_files.write_model`.
    **card
        Further arguments of :func:`model_card`.

    Returns
    -------
    Path
        The folder.
    """
    text = model_card(kind, description, **card)
    write_model(folder, kind, description, tensors)
    if not (folder / README).exists():
        replace_file(folder / README, text)
    return folder


def _header(kind: str, card: Mapping[str, Any], licence: str | None) -> str:
    tags = ["eeg", "braindecode", "self-supervised-learning", kind, card.get("task")]
    entries: dict[str, Any] = {
        "library_name": "braindecode_pars",
        **_licence_entries(licence),
        "tags": [tag for tag in tags if tag],
        # The Hub has no task of classifying signals.
        "pipeline_tag": "other" if kind == CLASSIFIER else "feature-extraction",
        # The Hub accepts no other names; the section on data has all.
        "datasets": [name for name in _corpora_of(card) if _REPO_NAME.fullmatch(name)] or None,
    }
    # A JSON value is YAML, too.
    lines = [f"{key}: {json.dumps(value)}" for key, value in entries.items() if value is not None]
    return "\n".join(["---", *lines, "---"])


def _licence_entries(licence: str | None) -> dict[str, str]:
    """Return the entries of the header: an identifier of the Hub, or a name of another licence."""
    if licence is None or not licence.strip():
        return {}
    identifier = licence.strip().lower().replace(" ", "-")
    identifier = {"odc-by-1.0": "odc-by"}.get(identifier, identifier)
    if identifier in _LICENCES:
        return {"license": identifier}
    # The Hub accepts only these characters in a name of a licence; the text has all of it.
    name = re.sub(r"[^a-z0-9.]+", "-", identifier).strip("-")
    return {"license": "other", **({"license_name": name} if name else {})}


def _corpora_of(card: Mapping[str, Any]) -> list[str]:
    """Return the corpora that the names of subjects begin with."""
    return sorted({str(subject).rpartition(":")[0] for subject in _subjects(card)} - {""})


def _has_hashes(card: Mapping[str, Any]) -> bool:
    names = (str(subject).rpartition(":")[2] for subject in _subjects(card))
    return any(salt_of(name) is not None for name in names)


def _subjects(card: Mapping[str, Any]) -> list:
    return [*(card.get("subjects") or ()), *(card.get("finetune_subjects") or ())]


def _task(kind: str, estimator: Mapping[str, Any], card: Mapping[str, Any]) -> list[str]:
    classes = [str(name) for name in (estimator.get("classes") or {}).get("values", ())]
    named = estimator.get("class_names") or classes
    pairs = zip(classes, map(str, named), strict=False)
    shown = ", ".join(label if name == label else f"{label} ({name})" for label, name in pairs)
    pretraining = (
        f"Its encoder was pretrained without labels on the task `{card['task']}`."
        if card.get("task")
        else "Its encoder was not pretrained, as far as is known."
    )
    return [_TASK[kind].format(classes=f"{len(classes)} classes: {shown}"), pretraining]


def _data(card: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- Pretraining: {_number(card.get('subjects'))}"
        + (f", {card['n_windows']:,} windows" if card.get("n_windows") else "")
        + (f", {card['epochs']} epochs" if card.get("epochs") else ""),
        f"- Fine-tuning: {_number(card.get('finetune_subjects'))}",
    ]
    corpora = [*map(str, facts.get("corpora") or ()), *_corpora_of(card)]
    lines += [f"- Corpora: {', '.join(dict.fromkeys(corpora))}"] if corpora else []
    return lines + [f"- Cite: {reference}" for reference in facts.get("attribution") or ()]


def _number(subjects: list | None) -> str:
    if subjects is None:
        return "subjects that are unknown"
    return f"{len(subjects)} subject{'' if len(subjects) == 1 else 's'}" if subjects else "none"


def _preprocessing(
    description: Mapping[str, Any],
    estimator: Mapping[str, Any],
    card: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> list[str]:
    """Return what is known, of the estimator before that of its encoder."""
    known = {**_known(facts), **_known(card.get("preprocessing"))}
    known |= _known(estimator.get("preprocessing"))
    windows = estimator.get("windows") or {}
    network = description.get("network") or {}
    sfreq = windows.get("sfreq") or card.get("sfreq") or known.get("sfreq")
    channels = known.get("channels") or windows.get("ch_names")
    channels = channels or [ch["ch_name"] for ch in network.get("chs_info") or ()]
    n_times = network.get("n_times") or windows.get("n_times") or card.get("n_times")
    lines = [
        f"- Sampling rate: {f'{sfreq:g} Hz' if sfreq else 'unknown'}",
        f"- Band: {_band(known.get('band'))}",
        f"- Notch: {_notch(known)}",
        f"- Reference: {known.get('reference') or 'unknown'}",
        f"- Unit: {_unit(known.get('scale'))}",
        f"- Channels: {', '.join(map(str, channels)) if channels else 'unknown'}",
    ]
    seconds = n_times / sfreq if sfreq and n_times else known.get("window_seconds")
    return [*lines, *([f"- Windows: {seconds:g} s"] if seconds else [])]


def _known(facts: Mapping[str, Any] | None) -> dict[str, Any]:
    names = ("sfreq", "band", "notch", "reference", "scale", "channels", "window_seconds")
    return {name: value for name in names if (value := (facts or {}).get(name)) is not None}


def _band(band: Iterable[float | None] | None) -> str:
    if band is None:
        return "unknown"
    low, high = band
    edges = [f"from {low:g} Hz"] if low is not None else []
    edges += [f"up to {high:g} Hz"] if high is not None else []
    return " ".join(edges) or "not filtered"


def _notch(known: Mapping[str, Any]) -> str:
    if "notch" not in known:
        return "unknown"
    return ", ".join(f"{f:g} Hz" for f in known["notch"]) or "none"


def _unit(scale: float | None) -> str:
    if scale is None:
        return "unknown"
    return {1.0: "volts", 1e6: "microvolts"}.get(scale, f"volts times {scale:g}")


def _scores(card: Mapping[str, Any], scores: pd.DataFrame | None) -> list[str]:
    lines = []
    if scores is None:
        lines.append("No scores of held-out subjects were given; measure them before you use it.")
    else:
        lines += ["Of held-out subjects:", "", *_table(scores)]
    if card.get("loss_relative") is not None:
        loss = f"{card['loss_relative']:.3f}"
        lines += ["", f"Last training loss of pretraining, relative to chance: {loss}."]
    return lines


def _table(scores: pd.DataFrame) -> Iterator[str]:
    def row(cells: Iterable[Any]) -> str:
        texts = (f"{c:.3g}" if isinstance(c, float) else str(c) for c in cells)
        lines = (" ".join(text.split()).replace("|", "\\|") for text in texts)
        return "| " + " | ".join(lines) + " |"

    yield row(scores.columns)
    yield row(["---"] * len(scores.columns))
    yield from (row(cells) for cells in scores.itertuples(index=False))


def _licence(licence: str | None, encoder: Mapping[str, Any]) -> list[str]:
    """Return the licence of a model, and that of the encoder it was made with."""
    stated = f"{licence}." if licence else "Not stated: ask the authors before you use the model."
    return [stated, *([f"Its encoder: {encoder['licence']}."] if encoder.get("licence") else [])]
