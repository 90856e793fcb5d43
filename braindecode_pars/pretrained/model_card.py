"""Model card of an encoder or estimator: ``README.md`` in the format of the Hugging Face Hub.

The card is made of the description in the model file and of the template beside this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from torch import Tensor

from braindecode_pars._common.files import replace_file
from braindecode_pars._common.model_files import ENTRIES, PREDICTORS, README, write_model
from braindecode_pars._common.subjects import CORPORA, is_hidden
from braindecode_pars.pretrained.cards import SHARED_FACTS, EncoderCard, card_of
from braindecode_pars.recordings.preprocessing import FIELDS, text_of

#: Licences by the identifiers of the Hub.
_LICENCES = (
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "agpl-3.0"),
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("odc-by", "odbl", "pddl"),
)
#: Entries of ``about`` that have a place of their own in the template.
_PLACED = {*SHARED_FACTS, "held_out", "audit"} - {"date"}


def model_card(
    kind: str,
    description: Mapping[str, Any],
    *,
    source: str = "FOLDER",
    names: bool = False,
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
    names : bool
        Whether the text has names of subjects that are not hidden, and entries of ``about`` that
        may have names: for a terminal, but not for a file that others may get.

    Returns
    -------
    str
        Markdown with a header in YAML: ``library_name``, ``tags`` and ``pipeline_tag``, and
        ``license`` where it is known.

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
    estimator: Mapping[str, Any] = description.get(ENTRIES.get(kind, ""), {})
    card = card_of(kind, description)
    if not names:
        card = replace(card, about={k: v for k, v in card.about.items() if k in SHARED_FACTS})
    # The card of a classifier or regressor is that of its encoder.
    facts = card.about
    own = {} if kind in PREDICTORS else facts
    subjects = [*(card.subjects or ()), *(card.finetune_subjects or ())]
    # Public corpora stay readable.
    seen = sorted({str(name).partition(":")[0] for name in subjects} & {*CORPORA})
    page = dict(
        kind=kind,
        header=_header(kind, card.task, own.get("licence")),
        title=own.get("name", f"{kind} for EEG"),
        about=own.get("description"),
        source=source,
        card=card,
        facts=facts,
        classes=_classes(estimator),
        people=partial(_people, names=names),
        corpora=dict.fromkeys([*map(str, facts.get("corpora") or ()), *seen]),
        encoder=_encoder(card, description.get("encoder", {})),
        hashed=any(map(is_hidden, subjects)),
        licence=own.get("licence"),
        licence_of_encoder=facts.get("licence") if kind in PREDICTORS else None,
        text_of=text_of,
        preprocessing=_preprocessing(description, estimator, card),
    )
    template = jinja2.Template(
        Path(__file__).with_suffix(".md").read_text(encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return template.render(page)


def write_shared(
    folder: Path, kind: str, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Path:
    """Write a model for others, with its card; a ``README.md`` in the folder stays as it is.

    Parameters
    ----------
    folder, kind, description, tensors
        As in :func:`~braindecode_pars._common.model_files.write_model`.

    Returns
    -------
    Path
        The folder.
    """
    text = model_card(kind, description)
    write_model(folder, kind, description, tensors)
    if not (folder / README).exists():
        replace_file(folder / README, text)
    return folder


def _header(kind: str, task: str | None, licence: str | None) -> dict[str, Any]:
    entries: dict[str, Any] = {"library_name": "braindecode_pars"}
    if licence:
        # The Hub accepts only these characters in a name of a licence; the text has all of it.
        name = re.sub(r"[^a-z0-9.]+", "-", licence.lower()).strip("-")
        name = {"odc-by-1.0": "odc-by"}.get(name, name)
        is_known = name in _LICENCES
        entries |= {"license": name} if is_known else {"license": "other", "license_name": name}
    tags = ["eeg", "braindecode", "self-supervised-learning", kind]
    entries["tags"] = [*tags, task] if task else tags
    # The Hub has no task of classifying signals.
    entries["pipeline_tag"] = "other" if kind in PREDICTORS else "feature-extraction"
    return entries


def _classes(estimator: Mapping[str, Any]) -> list[str]:
    """Return labels, with the names of their classes in brackets."""
    labels = [str(label) for label in estimator.get("classes", {}).get("values", ())]
    names = map(str, estimator.get("class_names") or labels)
    pairs = zip(labels, names, strict=True)
    return [label if name == label else f"{label} ({name})" for label, name in pairs]


def _people(subjects: list | None, *, names: bool) -> str:
    if subjects is None:
        return "subjects that are unknown"
    number = f"{len(subjects) or 'no'} subject{'' if len(subjects) == 1 else 's'}"
    shown = [str(subject) for subject in subjects if names and not is_hidden(subject)]
    return f"{number} ({', '.join(shown)})" if shown else number


def _preprocessing(
    description: Mapping[str, Any], estimator: Mapping[str, Any], card: EncoderCard
) -> dict[str, Any]:
    """Return what is known, of the estimator before that of its encoder."""
    about = {name: card.about[name] for name in FIELDS if card.about.get(name) is not None}
    known = about | card.preprocessing.known() | estimator.get("preprocessing", {})
    windows, network = estimator.get("windows", {}), description.get("network", {})
    known["sfreq"] = sfreq = windows.get("sfreq") or card.sfreq or known.get("sfreq")
    n_times = network.get("n_times") or windows.get("n_times") or card.n_times
    if sfreq and n_times:
        known["window_seconds"] = n_times / sfreq
    names = windows.get("ch_names") or [ch["ch_name"] for ch in network.get("chs_info") or ()]
    return dict.fromkeys(FIELDS) | {"channels": names} | known


def _encoder(card: EncoderCard, config: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known of an encoder and of its pretraining, by name."""
    before = card.continued_from
    facts = {
        "task": card.task and " ".join([card.task, *_given(card.task_params)]),
        "architecture": ", ".join(_given(config)),
        "continued from": before and f"an encoder of the task {before['task']}",
        "versions": ", ".join(f"{name} {version}" for name, version in card.versions.items()),
        **{name: value for name, value in card.about.items() if name not in _PLACED},
    }
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in facts.items()
        if value
    }


def _given(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in arguments.items()]
