"""Model card of a folder for others: ``README.md`` in the format of the Hugging Face Hub.

The card is made of the description in the model file, in which names of people are hidden, and of
the template beside this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
from torch import Tensor

from braindecode_pars._common.files import replace_file
from braindecode_pars._common.model_files import (
    CLASSIFIER,
    EMBEDDER,
    ENCODER,
    ENTRIES,
    FEW_LABELS,
    PREDICTORS,
    README,
    REGRESSOR,
    write_model,
)
from braindecode_pars._common.subjects import CORPORA, salt_of
from braindecode_pars.recordings.preprocessing import FIELDS, text_of

_TASK = {
    CLASSIFIER: "It classifies windows of EEG into {classes}.",
    FEW_LABELS: "It classifies windows of EEG into {classes}. Three logistic regressions vote: on "
    "features of a frozen encoder, on the tangent space of covariances, and on log band power.",
    REGRESSOR: "It predicts a number for each window of EEG.",
    EMBEDDER: "It embeds windows of EEG: one vector for each, for linear probes and figures.",
    ENCODER: "It encodes single channels of EEG, to be fine-tuned or frozen in a classifier.",
}
#: Licences by the identifiers of the Hub.
_LICENCES = (
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "agpl-3.0"),
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("odc-by", "odbl", "pddl"),
)
_HASHES = """
- Subjects of the training are salted hashes in the model file, so that `braindecode_pars` warns \
when one of your test subjects is among them. Whoever has a list of names can try each of them: \
the hashes are no anonymisation."""


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
        Licence of the model. None is that of the card, except for a classifier or regressor: the
        card of its encoder does not know it.
    about : str | None
        What the model is for, and what others should know; None is the description of the card.
    scores : DataFrame | None
        Scores of held-out subjects, a row for each method or metric, as from
        :func:`~braindecode_pars.evaluation.summarize`. None states that there are none.

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
    card = description.get("pretraining") or estimator.get("pretraining") or {}
    facts = card.get("about") or {}
    title, of_encoder = f"{kind} for EEG", ""
    if kind not in PREDICTORS:
        title = facts.get("name") or title
        licence, about = licence or facts.get("licence"), about or facts.get("description")
    elif facts.get("licence"):
        of_encoder = f"\nIts encoder: {facts['licence']}."
    people = [*(card.get("subjects") or ()), *(card.get("finetune_subjects") or ())]
    hashed = any(salt_of(str(name).rpartition(":")[2]) is not None for name in people)
    use = f'PARSClassifier(encoder="{source}").fit(windows)  # fine-tunes it'
    if kind != ENCODER:
        method = "transform" if kind == EMBEDDER else "predict"
        use = f'{kind}.from_pretrained("{source}").{method}(windows)  # prepared as below'
    template = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    return Template(template).substitute(
        header=_header(kind, card.get("task"), licence),
        title=title,
        about=f"\n{about}\n" if about else "",
        task="\n".join(_task(kind, estimator, card)),
        names=kind if kind in (FEW_LABELS, REGRESSOR) else f"{CLASSIFIER}, {EMBEDDER}",
        use=use,
        data="\n".join(_data(card, facts, people)),
        preprocessing="\n".join(_preprocessing(description, estimator, card)),
        scores="\n".join(_scores(card, scores)),
        hashes=_HASHES if hashed else "",
        licence=(licence or "Not stated: ask the authors before you use the model")
        + f".{of_encoder}",
    )


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


def _header(kind: str, task: str | None, licence: str | None) -> str:
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
    # A JSON value is YAML, too.
    lines = [f"{key}: {json.dumps(value)}" for key, value in entries.items()]
    return "\n".join(["---", *lines, "---"])


def _task(kind: str, estimator: Mapping[str, Any], card: Mapping[str, Any]) -> list[str]:
    classes = (estimator.get("classes") or {}).get("values", ())
    pairs = zip(classes, estimator.get("class_names") or classes, strict=True)
    shown = ", ".join(
        f"{label}" if f"{name}" == f"{label}" else f"{label} ({name})" for label, name in pairs
    )
    pretraining = "Its encoder was not pretrained, as far as is known."
    if card.get("task"):
        pretraining = f"Its encoder was pretrained without labels on the task `{card['task']}`."
    return [_TASK[kind].format(classes=f"{len(classes)} classes: {shown}"), pretraining]


def _data(card: Mapping[str, Any], facts: Mapping[str, Any], people: list) -> list[str]:
    counts = {"windows": card.get("n_windows"), "epochs": card.get("epochs")}
    amounts = [f", {number:,} {what}" for what, number in counts.items() if number]
    no_subjects = card.get("subjects") == [] and card.get("n_windows")
    seen = "no subjects" if no_subjects else _number(card.get("subjects"))
    lines = [
        f"- Pretraining: {seen}{''.join(amounts)}",
        f"- Fine-tuning: {_number(card.get('finetune_subjects'))}",
    ]
    of_people = sorted({str(name).partition(":")[0] for name in people} & {*CORPORA})
    corpora = dict.fromkeys([*map(str, facts.get("corpora") or ()), *of_people])
    lines += [f"- Corpora: {', '.join(corpora)}"] if corpora else []
    return lines + [f"- Cite: {reference}" for reference in facts.get("attribution") or ()]


def _number(subjects: list | None) -> str:
    if subjects is None:
        return "subjects that are unknown"
    return f"{len(subjects)} subject{'' if len(subjects) == 1 else 's'}" if subjects else "none"


def _preprocessing(description: Mapping, estimator: Mapping, card: Mapping) -> list[str]:
    """Return what is known, of the estimator before that of its encoder."""
    known: dict[str, Any] = {}
    for facts in (card.get("about"), card.get("preprocessing"), estimator.get("preprocessing")):
        known |= {name: facts[name] for name in FIELDS if facts and facts.get(name) is not None}
    windows = estimator.get("windows") or {}
    network = description.get("network") or {}
    sfreq = windows.get("sfreq") or card.get("sfreq") or known.get("sfreq")
    n_times = network.get("n_times") or windows.get("n_times") or card.get("n_times")
    seconds = n_times / sfreq if sfreq and n_times else known.get("window_seconds")
    chs_info = network.get("chs_info") or ()
    names = known.get("channels") or windows.get("ch_names") or [ch["ch_name"] for ch in chs_info]
    scale = known.get("scale")
    texts = {
        "Sampling rate": text_of("sfreq", sfreq),
        "Band": text_of("band", known.get("band")),
        "Notch": text_of("notch", known.get("notch")),
        "Reference": text_of("reference", known.get("reference")),
        "Unit": {None: "unknown", 1: "volts", 1e6: "microvolts"}.get(scale, f"volts times {scale}"),
        "Channels": ", ".join(names) or "unknown",
        "Windows": text_of("window_seconds", seconds),
    }
    return [f"- {name}: {text}" for name, text in texts.items()]


def _scores(card: Mapping[str, Any], scores: pd.DataFrame | None) -> list[str]:
    lines = ["No scores of held-out subjects were given; measure them before you use it."]
    if scores is not None:
        cells = scores.map(lambda cell: f"{cell:.3g}" if isinstance(cell, float) else str(cell))
        rows = [scores.columns, ["---"] * len(scores.columns), *cells.itertuples(index=False)]
        escaped = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
        lines = ["Of held-out subjects:", "", *(f"| {' | '.join(row)} |" for row in escaped)]
    if card.get("loss_relative") is not None:
        loss = f"{card['loss_relative']:.3f}"
        lines += ["", f"Last training loss of pretraining, relative to chance: {loss}."]
    return lines
