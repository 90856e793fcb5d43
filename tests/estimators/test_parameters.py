"""Every parameter of the estimators is checked, before anything is read."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.augmentation import GaussianNoise
from skorch.callbacks import Checkpoint, EarlyStopping, EpochTimer, LRScheduler

from braindecode_pars import FewLabelsClassifier, PARSClassifier, PARSEmbedder
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.windows_estimator import RULES, check_estimator

ESTIMATORS = [PARSClassifier, PARSEmbedder, NetworkClassifier, FewLabelsClassifier]
#: Parameters of any type: they are checked where they are used.
ANY_TYPE = {"encoder", "unlabeled_label", "augmentation", "random_state", "network", "weights"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_has_a_rule_that_its_default_passes(estimator):
    rules = {**RULES, **getattr(estimator, "_own_rules", {})}
    assert set(estimator().get_params()) - ANY_TYPE <= set(rules)
    check_estimator(estimator())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_wrong_parameter_is_refused_before_the_data_are_read(estimator):
    with pytest.raises(ValueError, match=f"^{estimator.__name__}: sfreq"):
        estimator(sfreq=-1).fit("this is not read")


@pytest.mark.parametrize(
    "parameters",
    [
        dict(augmentation=[GaussianNoise(0.5)]),
        dict(callbacks=[EpochTimer, EpochTimer(), ("timer", EpochTimer())]),
        dict(class_weight={0: 2.0}),
        dict(random_state=np.random.RandomState(0)),
        dict(random_state=np.int64(3), embed_dim=np.int64(64)),
    ],
)
def test_what_is_accepted(parameters):
    check_estimator(PARSClassifier(**parameters))


@pytest.mark.parametrize("kind", [PARSClassifier, NetworkClassifier])
def test_a_scheduler_and_the_warmup_exclude_each_other(kind):
    scheduler = LRScheduler("ExponentialLR", gamma=0.5)
    for callback in (scheduler, ("rate", scheduler), LRScheduler):
        with pytest.raises(ValueError, match=r"LRScheduler.* finetune_warmup"):
            check_estimator(kind(callbacks=[callback]))
        check_estimator(kind(callbacks=[callback], finetune_warmup=None))


@pytest.mark.parametrize("kind", [PARSClassifier, NetworkClassifier])
def test_a_callback_on_the_validation_loss_needs_validation(kind):
    for callback in (EarlyStopping(), ("best", Checkpoint()), EarlyStopping):
        with pytest.raises(ValueError, match="valid_loss"):
            check_estimator(kind(callbacks=[callback]))
        check_estimator(kind(callbacks=[callback], validation=0.2))
    check_estimator(kind(callbacks=[EarlyStopping(monitor="train_loss")]))
