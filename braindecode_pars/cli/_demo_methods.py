"""What the demo compares: encoders to pretrain, and classifiers to score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sklearn.base import BaseEstimator

from braindecode_pars.baselines import make_methods
from braindecode_pars.cli._demo_scenarios import Scenario
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretrained import load_encoder

__all__ = ["classifiers", "embedders"]


def embedders(scenario: Scenario, tasks: Sequence[str], seed: int) -> dict[str, PARSEmbedder]:
    """Return the unfitted embedders of the demo by method name.

    Parameters
    ----------
    scenario : Scenario
        Data and settings. Its encoder, if it has one, is continued with its own task.
    tasks : sequence of str
        Pretext tasks of new encoders. Not used when the scenario has an encoder.
    seed : int
        Seed of pretraining.
    """
    shared = dict(random_state=seed, verbose=1)
    if scenario.encoder is None:
        return {
            PRETEXT_TASKS[task].__name__: PARSEmbedder(task, **scenario.pretrain, **shared)
            for task in tasks
        }
    card = load_encoder(scenario.encoder).card
    continued = PARSEmbedder(
        card.task,
        pretext_params=card.task_params,
        encoder=scenario.encoder,
        continue_pretraining=True,
        **scenario.continued,
        **shared,
    )
    return {"continued": continued}


def classifiers(scenario: Scenario, encoders: Mapping[str, Path]) -> dict[str, BaseEstimator]:
    """Return the unfitted classifiers of the demo by method name.

    Parameters
    ----------
    scenario : Scenario
        Data and settings. Its encoder, if it has one, is compared as it is: fine-tuned
        (``"pretrained"``) and frozen (``"pretrained probe"``).
    encoders : dict of str to Path
        Folders of the encoders that the demo has pretrained, by method name.
    """
    training = dict(verbose=0, **scenario.finetune)
    fine_tuned = {
        method: PARSClassifier(encoder=folder, **training) for method, folder in encoders.items()
    }
    classical = make_methods(["band-power"])
    if scenario.encoder is None:
        return {**fine_tuned, "scratch": PARSClassifier(pretext=None, **training), **classical}
    # The encoder in the package, fine-tuned and frozen, and one of its size from scratch.
    shipped = make_methods(["scratch", "probe"], encoder=scenario.encoder, **training)
    return {
        "pretrained": shipped["pretrained"],
        **fine_tuned,
        "scratch": shipped["scratch"],
        "pretrained probe": shipped["pretrained probe"],
        **classical,
    }
