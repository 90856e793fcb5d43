"""Final classifier of a study, trained with the labels of all subjects."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

from sklearn.base import clone

from braindecode_pars._common import model_files
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.study import study_scores
from braindecode_pars.study.study_design import METRIC, StudyPlan
from braindecode_pars.study.study_methods import RANDOM, Method
from braindecode_pars.study.study_tests import Recommendation

log = logging.getLogger(__name__)

#: Name of the folder of the classifier, in the folder of the study.
FOLDER = "model"


def check_model_folder(folder: Path) -> None:
    """Check that the folder of a study contains no model, or only a model saved by a study.

    Raises
    ------
    ValueError
        If the folder contains a model that was not saved by a study.
    """
    model = folder / FOLDER
    for kind in model_files.kinds_in(model):
        description = model_files.read_model(model).description
        if "expected_score" not in description.get(model_files.ENTRIES.get(kind, ""), ()):
            raise ValueError(
                f"{model} contains a {kind} that was not saved by a study. The study would "
                "overwrite it. Move this model, or choose another output folder."
            )


def save_model(plan: StudyPlan, chosen: Recommendation) -> str | None:
    """Train the recommended method on all labeled subjects, save it, and return its folder.

    If the method uses an encoder pretrained on this dataset, a new encoder is pretrained on all
    subjects. If the classifier has no method ``save``, nothing is saved, and None is returned.
    """
    log.info("Training the recommended method on all labeled subjects.")
    method = next(method for method in plan.methods if method.name == chosen.method)
    source = method
    if not study_scores.needs_encoder(method):  # required by the class, but not used
        source = Method(RANDOM, "random", ("encoder",))
    encoder = study_scores.encoder_of(source, plan, None, lambda text: None)
    if method.estimator is None:
        recenter = "subject" if chosen.is_centered else None
        estimator: Any = FewLabelsClassifier(
            encoder, views=list(method.views), recenter=recenter, C=None, verbose=0
        )
    else:
        estimator = clone(method.estimator)
        if not hasattr(estimator, "save"):
            return None
        if method.task is not None:
            estimator.set_params(encoder=encoder)
    corpus = plan.design.corpus
    folder = plan.folder / FOLDER
    estimator.fit(corpus.X[corpus.labeled], corpus.y[corpus.labeled])
    score = {name: getattr(chosen, name) for name in ("score", "low", "high")}
    estimator.expected_score_ = dict(metric=METRIC.replace("_", " ")) | score
    if {*model_files.kinds_in(folder)} - {type(estimator).__name__}:  # from an earlier study
        shutil.rmtree(folder)
    estimator.save(folder)
    return str(folder)
