"""PARSRegressor: targets, their standardization, the losses, seeds, saving and refused targets."""

from __future__ import annotations

import copy
from itertools import combinations

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from sklearn.base import is_regressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, cross_val_score
from support.convergence import convergence_warnings
from support.small_estimators import FAST, same_weights

from braindecode_pars import PARSClassifier, PARSRegressor, as_sklearn
from braindecode_pars.recordings.cutting import name_classes
from braindecode_pars.windows.convert import as_windows


def regressor(**arguments) -> PARSRegressor:
    return PARSRegressor(**{**FAST, **arguments})


#: A fit that learns in a second, of 100-Hz windows of two channels.
QUICK = dict(pretext=None, sfreq=100.0, finetune_epochs=20, finetune_lr=0.01, validation=0)


def windows_of_rhythm(y):
    """Windows of noise with a rhythm of 10 Hz, which is stronger the larger the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(y), 2, 300))
    phases = rng.uniform(0, 2 * np.pi, size=(len(y), 1, 1))
    rhythm = np.sin(2 * np.pi * 10 * np.arange(300) / 100 + phases)
    return 1e-5 * (X + np.exp((y - 170) / 20)[:, None, None] * rhythm)


@pytest.fixture(scope="module")
def rhythm():
    """Windows of six subjects, and a target of each window."""
    y = np.random.default_rng(1).normal(170, 20, size=96)
    return windows_of_rhythm(y), y, np.arange(96) % 6


@pytest.fixture(scope="module")
def depth(nights):
    """A target of each window of simulated sleep."""
    return as_sklearn(nights)[1].astype(float)


@pytest.fixture(scope="module")
def fitted(nights, depth):
    return regressor().fit(nights, depth)


def test_fit_and_predict_a_windows_dataset(fitted, nights, depth):
    predicted = fitted.predict(nights)
    assert (predicted.shape, predicted.dtype) == ((24,), np.float64)
    assert fitted.score(nights, depth) == r2_score(depth, predicted)
    with pytest.warns(UserWarning, match="R2 .*not defined"):  # equal up to rounding
        assert np.isnan(fitted.score(nights, np.tile([0.3, 0.1 + 0.2], 12)))
    assert is_regressor(fitted)
    assert fitted.history_["phase"].tolist() == ["pretraining", "fine-tuning"]
    assert fitted.encoder_card_.finetune_subjects == [1, 2, 3, 4]


def test_codes_of_classes_are_refused_and_numbers_of_a_dataset_are_taken(fitted, nights, depth):
    message = r"codes of classes \(.*N1.* y\b"
    with pytest.raises(ValueError, match=message):
        regressor().fit(nights)
    with pytest.raises(ValueError, match=message):
        fitted.score(as_sklearn(nights)[0])
    numbers = as_windows(nights, depth + 0.5)
    assert same_weights(regressor().fit(numbers).net_.module_, fitted.net_.module_)
    predicted = fitted.predict(nights)
    assert fitted.score(numbers) == r2_score(depth + 0.5, predicted)


def test_codes_of_numbers_are_refused(nights):
    names = ["17", "19", "22.5", "3", "31"]
    parts = [name_classes(copy.copy(part), names) for part in nights.datasets]
    X, y, _ = as_sklearn(BaseConcatDataset(parts))
    with pytest.raises(ValueError, match="codes of classes"):
        regressor().fit(X, y)


@pytest.mark.slow
def test_a_target_of_each_window_is_learned_by_the_signal_alone(rhythm):
    X, y, groups = rhythm
    (fold, _) = GroupKFold(2).split(X, y, groups)
    folds = dict(cv=[fold], scoring="r2", error_score="raise")
    assert cross_val_score(regressor(**QUICK), X, y, **folds).min() > 0.7
    permuted = np.random.default_rng(0).permutation(y)
    assert cross_val_score(regressor(**QUICK), X, permuted, **folds).max() < 0.2


def test_the_network_learns_standardized_targets_of_training_windows(rhythm):
    X, y, groups = rhythm
    y = y.copy()
    y[5] = np.nan
    model = regressor(**(QUICK | dict(validation=0.5, finetune_epochs=1)))
    model.fit(X, y, groups=groups)
    # Three subjects are held out: those for which mean and standard deviation are right.
    found = []
    for held_out in combinations(range(6), 3):
        trained = [i for i in range(96) if groups[i] not in held_out and i != 5]
        mean = sum(y[i] for i in trained) / len(trained)
        variance = sum((y[i] - mean) ** 2 for i in trained) / len(trained)
        found.append(np.allclose([mean, variance**0.5], [model.target_mean_, model.target_scale_]))
    assert sum(found) == 1
    outputs = model._outputs(X)[:, 0].double().numpy()
    np.testing.assert_array_equal(
        model.predict(X), model.target_mean_ + model.target_scale_ * outputs
    )


@pytest.mark.parametrize("loss", ["mse", "huber"])
def test_the_validation_loss_is_that_of_all_its_windows_at_once(rhythm, loss):
    X, y, groups = rhythm
    splits = dict(validation=0.5, finetune_batch_size=7, finetune_epochs=2, loss=loss)
    model = regressor(**(QUICK | splits)).fit(X, y, groups=groups)
    predicted, candidates = model.predict(X), []
    for held_out in combinations(range(6), 3):
        of = np.isin(groups, held_out)
        if np.isclose(np.mean(y[~of]), model.target_mean_):
            errors = np.abs(predicted - y)[of] / model.target_scale_
            assert errors.min() < 1 < errors.max()
            costs = np.where(errors <= 1, errors**2 / 2, errors - 0.5)
            costs = errors**2 if loss == "mse" else costs
            candidates.append(np.mean(costs))
    best = model.history_["valid_loss"].min()
    assert candidates == [pytest.approx(best, rel=1e-4)]


def test_windows_with_nan_are_pretrained_on_only(nights):
    X, y, groups = as_sklearn(nights)
    y = y.astype(float)
    y[groups > 2] = np.nan
    model = regressor(validation=0).fit(X, y)
    assert model.encoder_card_.subjects == [1, 2, 3, 4]
    assert model.encoder_card_.finetune_subjects == [1, 2]
    few = X[np.flatnonzero(groups < 3)]
    further = X[np.flatnonzero(groups > 2)]
    more = regressor(validation=0).fit(few, y[groups < 3], unlabeled=further)
    assert same_weights(model.net_.module_, more.net_.module_)
    known = ~np.isnan(y)
    assert model.score(X, y) == r2_score(y[known], model.predict(X)[known])


def test_validation_windows_without_subjects_need_no_classes(rhythm):
    """Every target occurs once."""
    X, y, _ = rhythm
    model = regressor(**(QUICK | dict(validation=0.25, finetune_epochs=2))).fit(X, y)
    assert model.history_["valid_loss"].notna().all()


def test_a_loaded_regressor_predicts_and_learns_the_same(nights, depth, tmp_path):
    model = regressor(loss="huber").fit(nights, depth)
    loaded = PARSRegressor.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(nights), model.predict(nights))
    assert loaded.get_params() == model.get_params()
    assert loaded.history_.equals(model.history_)
    assert loaded.encoder_card_ == model.encoder_card_
    assert same_weights(loaded.fit(nights, depth).net_.module_, model.net_.module_)
    with pytest.raises(ValueError, match="a saved PARSRegressor, but a PARSClassifier"):
        PARSClassifier.load(tmp_path / "model")


def test_a_recording_is_predicted_window_after_window(rhythm):
    X, y, _ = rhythm
    info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    epochs = mne.EpochsArray(X, info, verbose="error")
    model = regressor(**(QUICK | dict(finetune_epochs=2))).fit(epochs, y)
    raw = mne.io.RawArray(np.concatenate(X[:10], axis=1), info, verbose="error")
    raw.set_annotations(mne.Annotations([7.0], [1.0], ["BAD_movement"]))
    found = model.predict_raw(raw)
    assert list(found) == ["onset", "duration", "prediction", "n_chans"]
    assert found["onset"].tolist() == [3.0 * i for i in range(10)]
    expected = model.predict(epochs[:10])
    expected[2] = np.nan
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-5)
    assert found.attrs["findings"]["windows_not_predicted"] == 1


@pytest.mark.slow
def test_a_validation_loss_that_is_not_below_that_of_the_mean(rhythm):
    """What holds for one of two subjects is the contrary of what holds for the other."""
    X, y, groups = rhythm
    own = groups % 2
    model = regressor(**(QUICK | dict(validation=0.5)))
    assert convergence_warnings(model.fit, X, y, groups=own) == []
    *_, never = convergence_warnings(model.fit, X, np.where(own, y, 340 - y), groups=own)
    assert "the mean target for every window" in never


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (None, "no targets"),
        (["21", "22"] * 48, "not real numbers"),
        (np.full(96, 1j), "not real numbers"),
        (np.full(96, np.nan), "no targets"),
        (np.where(np.arange(96) == 3, np.inf, 1.0), "1 of 96 targets are infinite or"),
        # by rounding only, they differ
        (np.where(np.arange(96) % 2, 23.7, np.nextafter(23.7, 0)), "one sample"),
        (np.zeros((96, 2)), r"\(96, 2\)"),
        (np.arange(95.0), "95"),
    ],
)
def test_targets_that_are_refused(rhythm, y, match):
    X, _, _ = rhythm
    model = regressor(**QUICK)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)
    assert not hasattr(model, "target_mean_")
