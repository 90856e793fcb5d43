"""Create the folder of a bundled encoder from a pretraining run.

``python docs/experiments/make_encoder.py RUN STORE NAME`` loads the encoder of the finished run in
the folder RUN, computes the loss of the run on the held-out subjects in STORE, and writes the
folder NAME into the package. The weights are rounded to half precision (float16); loaded encoders
compute in float32. Run ``audit.py`` afterwards, which audits the features and writes the result to
the encoder card.
"""

from __future__ import annotations

import copy
import json
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
from held_out_loss import HeldOutLoss, held_out_loss

from braindecode_pars._common.files import read_json, replace_file
from braindecode_pars._common.model_files import ALIASES, FOLDER, bundled_folder
from braindecode_pars.baselines import CENTERED
from braindecode_pars.pretext.base import params_of
from braindecode_pars.pretrained import EncoderCard, Pretrained, load_encoder, save_encoder
from braindecode_pars.runs import RunConfig
from braindecode_pars.signal_store import SignalStore

__all__ = ["LARGEST", "command_of", "make"]

#: Maximum size of a bundled encoder, in bytes.
LARGEST = 3_000_000

#: Description of the corpus and its preprocessing, as entries of ``EncoderCard.about``.
EEGMMIDB: dict[str, Any] = {
    "license": "ODC-BY 1.0",
    "attribution": [
        "Schalk G., McFarland D. J., Hinterberger T., Birbaumer N., Wolpaw J. R. (2004): BCI2000: "
        "a general-purpose brain-computer interface (BCI) system. IEEE Transactions on Biomedical "
        "Engineering 51(6):1034-1043. https://doi.org/10.1109/TBME.2004.827072",
        "Goldberger A. L. et al. (2000): PhysioBank, PhysioToolkit, and PhysioNet. Circulation "
        "101(23):e215-e220. https://doi.org/10.1161/01.CIR.101.23.e215",
    ],
    "corpora": ["EEG Motor Movement/Imagery Dataset 1.0.0 (PhysioNet)"],
    "band": [0.5, 45],
    "reference": "average",
}

#: Uses that are not permitted.
LIMITS = (
    "Not for diagnosis, nor for any decision about a person. Tested on waking EEG of healthy "
    "adults only: rest, mental arithmetic, imagined movement; not on sleep, patients or children. "
    "It detects features of single channels, also those of eyes, muscles and drifts."
)

#: Seed of the crops of the held-out loss.
SEED = 0

#: Settings of a run with options of another form, or without effect on its result.
_OTHER_OPTIONS = ("task_params", "exclude_subjects", "device", "num_workers")

_README = """\
# {name}

{description} It
contains information from the *EEG Motor Movement/Imagery Dataset* 1.0.0
(<https://physionet.org/content/eegmmidb/1.0.0/>), which is made available under the
[Open Data Commons Attribution License 1.0](https://opendatacommons.org/licenses/by/1-0/)
(ODC-BY 1.0). The encoder has the same license. Cite:

{cite}

Changes to the recordings: runs 4, 8 and 12 (imagery of the left or right fist) were resampled to
{sfreq:g} Hz, band-pass filtered to {low:g}-{high:g} Hz without a notch filter, and re-referenced to
the average of {n_chans} channels (the motor rows and the 10-20 system). Only these channels were
used. Subjects 17 and higher were read from copies of the recordings at 128 Hz. The encoder was
trained on random crops of single channels, without labels. This folder contains the weights of the
encoder, but no recordings.

- Training subjects: {people}
- Loss on held-out subjects ({held_out_people}): {loss:.3f} times the chance-level loss
  (below 1 is better than chance), computed from {n_crops} random crops
- Date of training: {date}
- Machine: {machine}
- Scores on development subjects: {development}
- Limitations: {limits}

`encoder.safetensors` contains the weights and the encoder card (a description of the training
data); `encoder.json` is a human-readable copy of the card. To train the encoder again on a signal
store (a folder created by `braindecode-pars store`) of the same recordings and create this folder,
run:

```sh
{command}
python docs/experiments/make_encoder.py RUN HELD_OUT_STORE {name}
```
"""


def make(
    run: str | Path, store: SignalStore | str | Path, name: str, out: Path | None = None
) -> Path:
    """Write the folder of an encoder: weights, complete card and ``README.md``.

    Parameters
    ----------
    run : path
        Folder of a finished pretraining run on subjects of eegmmidb.
    store : SignalStore | path
        Recordings of held-out subjects of the same corpus, with the same preprocessing.
    name : str
        Name of the encoder: its task and corpus, such as ``"features-eegmmidb"``.
    out : Path | None
        Folder of the encoder. If None, the folder of bundled encoders.

    Returns
    -------
    Path
        Folder of the encoder.

    Raises
    ------
    ValueError
        If an encoder of this name is bundled, the encoder is larger than :data:`LARGEST`, its
        training subjects are unknown, ``name`` contains characters other than lower-case letters,
        digits and hyphens, or as in ``held_out_loss``.

    Examples
    --------
    >>> from make_encoder import make
    >>> make("run1", "stores/51-70", "features-eegmmidb")  # doctest: +SKIP
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name={name!r} must consist of lower-case letters, digits and hyphens.")
    if bundled_folder(name) is not None:
        raise ValueError(f"An encoder {name!r} is already bundled. Remove its folder first.")
    run = Path(run)
    store = store if isinstance(store, SignalStore) else SignalStore.open(store)
    pretrained = load_encoder(run)
    _check_size(pretrained)
    loss = held_out_loss(run, store, seed=SEED)
    about = _about(name, run, pretrained.card, store, loss)
    # instead of the names of 37 channels
    prepared = replace(pretrained.card.preprocessing, reference=about["reference"])
    card = replace(pretrained.card, about=about, preprocessing=prepared)
    encoder = copy.deepcopy(pretrained.encoder).half()
    folder = save_encoder(encoder, card, out or FOLDER / name)
    replace_file(folder / "README.md", _readme(card))
    return folder


def command_of(config: RunConfig) -> str:
    """Return the command of a run with this configuration, independent of the defaults.

    Examples
    --------
    >>> from make_encoder import command_of
    >>> from braindecode_pars.runs import RunConfig
    >>> command_of(RunConfig(task="spectral", task_params={"mask_ratio": 0.5}))
    'braindecode-pars pretrain STORE --out RUN --task spectral --epochs 1000 ...'
    """
    words = ["braindecode-pars", "pretrain", "STORE", "--out", "RUN"]
    if params_of(config.task, None):  # the defaults for a laptop would add arguments of the task
        words.append("--paper")
    if config.epochs is None and config.max_steps is None and config.minutes is None:
        words += ["--max-steps", str(config.step_limit)]
    for entry in fields(config):
        value = getattr(config, entry.name)
        # A run with one process uses whole batches.
        is_whole = entry.name == "micro_batch_size" and value == config.batch_size
        if value is None or value is False or is_whole or entry.name in _OTHER_OPTIONS:
            continue
        option = f"--{entry.name.replace('_', '-')}"
        several = value if isinstance(value, tuple) else (value,)
        words += [option] if value is True else [w for v in several for w in (option, str(v))]
    for key, value in config.task_params.items():
        shown = json.dumps(value) if isinstance(value, Mapping) else value
        words += ["--set", f"{key}={shown}"]
    for subject in config.exclude_subjects:
        words += ["--exclude-subject", subject]
    return shlex.join(words)


def _check_size(pretrained: Pretrained) -> None:
    n_bytes = sum(tensor.nbytes for tensor in pretrained.encoder.state_dict().values())
    if n_bytes > LARGEST:
        raise ValueError(
            f"The encoder has {n_bytes / 1e6:.1f} MB, but bundled encoders must not exceed "
            f"{LARGEST / 1e6:g} MB. Train a smaller encoder."
        )


def _about(
    name: str, run: Path, card: EncoderCard, store: SignalStore, loss: HeldOutLoss
) -> dict[str, Any]:
    """Return the entries of the card that do not result from training."""
    described = read_json(run / "run.json")
    if not card.subjects:
        raise ValueError(
            f"The subjects of the run in {run} are unknown, but the encoder card requires them."
        )
    joint = card.task_params.get("tasks", ())
    tasks = f"tasks {' and '.join(joint)}" if joint else f"task {card.task}"
    return {
        "name": name,
        "description": f"An encoder that was pretrained on waking EEG with the {tasks}.",
        **EEGMMIDB,
        "people": [_people(card.subjects)],
        "channels": _channels(store),
        "limits": LIMITS,
        **_development(name),
        "held_out": {
            "people": _people(loss.subjects),
            "loss_relative": loss.loss_relative,
            "parts": loss.parts,
            "n_crops": loss.n_crops,
            "seed": SEED,
        },
        "date": described["sessions"][-1]["started"][:10],
        "command": command_of(RunConfig(**described["configuration"])),
        "machine": _machine(described["sessions"][-1], run / "metrics.csv"),
    }


def _development(name: str) -> dict[str, str]:
    """Return the scores on development subjects, if ``few_labels.py`` has stored any."""
    aliases = [alias for alias, of in ALIASES.items() if of == name]
    stored = Path(__file__).parents[1] / "measured" / "few_labels" / "development.csv"
    if not aliases or not stored.exists():
        return {}
    table = pd.read_csv(stored, comment="#").set_index(["method", "n_train_subjects", "seed"])
    means = table.mean(axis=1).groupby(["method", "n_train_subjects"]).mean()
    shown = {
        title: " / ".join(f"{value:.2f}" for value in means[aliases[0] + method])
        for title, method in (("plain", ""), ("centered by subject", CENTERED))
    }
    numbers = " / ".join(map(str, means[aliases[0]].index))
    scores = ", ".join(f"{scores} ({title})" for title, scores in shown.items())
    return {
        "development": "Balanced accuracy of logistic regression on frozen features, rest or "
        f"mental arithmetic, {numbers} labeled subjects: {scores}; chance level 0.50."
    }


def _people(subjects: list) -> str:
    """Describe the number of subjects, and the first and the last subject."""
    names = [str(subject).rpartition(":")[2] for subject in subjects]
    ordered = sorted(names, key=lambda name: int(re.sub(r"\D", "", name) or 0))
    return f"{len(ordered)} volunteers (subjects {ordered[0]} to {ordered[-1]})"


def _channels(store: SignalStore) -> list[str]:
    montages = {tuple(names) for names in store.recordings["ch_names"]}
    if len(montages) > 1:
        raise ValueError(
            f"The recordings in {store.path} have different channels. Use equal channels."
        )
    return list(montages.pop())


def _machine(session: Mapping[str, Any], metrics: Path) -> str:
    minutes = pd.read_csv(metrics)["seconds"].sum() / 60
    processes = session["processes"]
    return (
        f"{processes} process{'es' if processes > 1 else ''} on {session['device']}, "
        f"{minutes:.0f} minutes, Python {session['python']}, torch {session['versions']['torch']}"
    )


def _readme(card: EncoderCard) -> str:
    about, held_out = card.about, card.about["held_out"]
    low, high = about["band"]
    return _README.format(
        name=about["name"],
        description=about["description"],
        cite="\n".join(f"- {reference}" for reference in about["attribution"]),
        sfreq=card.sfreq,
        low=low,
        high=high,
        n_chans=len(about["channels"]),
        people=about["people"][0],
        held_out_people=held_out["people"],
        loss=held_out["loss_relative"],
        n_crops=held_out["n_crops"],
        date=about["date"],
        machine=about["machine"],
        limits=about["limits"],
        development=about.get("development", "not scored."),
        command=about["command"],
    )


if __name__ == "__main__":
    parser = ArgumentParser(description="Make the folder of an encoder in the package.")
    parser.add_argument("run", metavar="RUN", help="folder of a finished pretraining run")
    parser.add_argument("store", metavar="STORE", help="store of held-out subjects")
    parser.add_argument("name", metavar="NAME", help="task and corpus, such as features-eegmmidb")
    options = parser.parse_args()
    make(options.run, options.store, options.name)
