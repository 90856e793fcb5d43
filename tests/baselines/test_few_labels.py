"""FewLabelsClassifier: the ensemble, compared with plain computations with scikit-learn."""

from __future__ import annotations

import copy

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from pyriemann.tangentspace import TangentSpace
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.small_estimators import embedder, same_weights

from braindecode_pars import (
    FewLabelsClassifier,
    PARSClassifier,
    PARSEmbedder,
    SubjectCentering,
    as_sklearn,
)
from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.baselines import linear_probe
from braindecode_pars.baselines.linear_probe import GRID, folds_by_subject
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogBandPower,
    SpatialCovariance,
    cost_table,
    features_computed_once,
    leave_one_subject_out,
)
from braindecode_pars.pretrained import load_encoder

VIEWS = ["encoder", "tangent_space", "band_power"]


@pytest.fixture(scope="module", autouse=True)
def features_of_all_tests():
    with features_computed_once():
        yield


@pytest.fixture(scope="module")
def donor(nights):
    """A small random encoder at 100 Hz."""
    return embedder(pretext=None).fit(nights)


@pytest.fixture(scope="module")
def data(nights):
    return as_sklearn(nights)


def vote(encoder, **arguments):
    defaults = {"verbose": 0, "device": "cpu", "prior_strength": 1.0}  # no search of the strength
    return FewLabelsClassifier(encoder, **{**defaults, **arguments})


def band_power(encoder, **arguments):
    """A vote of one feature set, for what does not depend on the features."""
    return vote(encoder, **{"C": 0.1, "views": ["band_power"], **arguments})


@pytest.fixture(scope="module")
def fitted(donor, nights):
    return vote(donor, C=0.1).fit(nights)


def centered(features, groups):
    means = {subject: features[groups == subject].mean(axis=0) for subject in set(groups.tolist())}
    return np.array([f - means[s] for f, s in zip(features, groups.tolist(), strict=True)])


def features_of(donor, X, train, test, groups=None):
    """Features of each feature set for training and test windows, centered if there are groups."""
    transformers = [
        PARSEmbedder(encoder=donor, pooling="channels", verbose=0),
        make_pipeline(SpatialCovariance(), TangentSpace()),
        LogBandPower(),
    ]
    for transformer in transformers:
        pair = [
            transformer.fit(X[train]).transform(X[part]).astype(float) for part in (train, test)
        ]
        if groups is not None:
            pair = [centered(f, groups[part]) for f, part in zip(pair, (train, test), strict=True)]
        yield pair


def probabilities_of(train, y, test, C):
    """Standardize with the training windows, and return what logistic regression says."""
    mean, scale = train.mean(axis=0), train.std(axis=0)
    regression = LogisticRegression(C=C, class_weight="balanced", max_iter=1000)
    return regression.fit((train - mean) / scale, y).predict_proba((test - mean) / scale)


@pytest.mark.parametrize("recenter", ["auto", None])
def test_the_vote_equals_a_plain_recomputation(donor, data, recenter):
    X, y, groups = data
    train, test = groups != 4, groups == 4
    clf = vote(donor, C=0.1, recenter=recenter).fit(X[train], y[train])
    assert clf.recenter_ == (None if recenter is None else "subject")
    own = features_of(donor, X, train, test, None if recenter is None else groups)
    expected = np.mean([probabilities_of(f, y[train], g, 0.1) for f, g in own], axis=0)
    found = clf.predict_proba(X[test])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(clf.predict(X[test]), clf.classes_[expected.argmax(axis=1)])
    assert clf.score(X[test], y[test]) == np.mean(clf.predict(X[test]) == y[test])
    decision = np.exp(clf.decision_function(X[test]))
    np.testing.assert_allclose(decision, expected, atol=1e-6)
    assert dict.fromkeys(VIEWS, 0.1) == clf.C_


@pytest.mark.filterwarnings(
    "ignore:The following parameters are not restored", "ignore:ChannelFeatures"
)
@pytest.mark.parametrize(
    ("view", "transformer", "recenter"),
    [("hand_crafted", ChannelFeatures(), None), ("encoder", None, "subject")],
)
def test_one_feature_set_is_a_linear_probe(donor, data, tmp_path, view, transformer, recenter):
    X, y, groups = data
    train, test = groups != 4, groups == 4
    clf = vote(donor, C=None, recenter=recenter, views=[view]).fit(X[train], y[train])
    transformer = transformer or PARSEmbedder(encoder=donor, pooling="channels", verbose=0)
    transformer = SubjectCentering(transformer) if recenter else transformer
    probe = LinearProbe(transformer, C=None).fit(X[train], y[train])
    found = clf.predict_proba(X[test])
    # Solvers of single and of double precision end at slightly different weights.
    np.testing.assert_allclose(found, probe.predict_proba(X[test]), atol=1e-3)
    assert {view: probe.C_} == clf.C_
    loaded = FewLabelsClassifier.load(clf.save(tmp_path / view), device="cpu")
    np.testing.assert_allclose(loaded.predict_proba(X[test]), found, atol=1e-6)


def test_no_subject_is_on_both_sides_of_a_fold():
    groups = np.array([1, "1", "b", "c", 2, 3, 4] * 4, dtype=object)
    y = np.arange(28) % 2
    folds = folds_by_subject(groups, y)
    assert len(folds) == 5
    for train, test in folds:
        assert set(groups[train]).isdisjoint(groups[test])
    assert sorted(np.concatenate([test for _, test in folds])) == [*range(28)]
    # A fold that takes a class out of the training, and too few or unknown subjects.
    assert len(folds_by_subject(groups, (groups == "b").astype(int))) == 4
    assert folds_by_subject(groups[[0, 7, 14]], y[[0, 7, 14]]) == []
    assert folds_by_subject(None, y) == []


def test_what_auto_chooses_is_logged(donor, data, caplog, monkeypatch):
    X, y, groups = data
    y = y % 2
    caplog.set_level("INFO")
    monkeypatch.setattr(linear_probe, "GRID", GRID[2:])
    clf = band_power(donor, C=None, verbose=1)
    for part, recenter, reason, n_folds in (
        (groups > 0, "subject", "known", 4),
        (groups < 2, "subject", "known", 0),
        ((groups < 3) | (np.arange(96) > 86), None, "subject 4 has 9", 3),
    ):
        caplog.clear()
        clf.fit(X[part], y[part])
        assert clf.recenter_ == recenter
        [message] = caplog.messages
        assert reason in message
        assert {*clf.C_.values()} <= ({*GRID[2:]} if n_folds else {0.01})
    with pytest.raises(ValueError, match=r"recenter='subject'.* 10 .*subject 4 has 9"):
        band_power(donor, recenter="subject").fit(X[part], y[part])


def test_a_class_of_a_subject_is_not_centered_away(donor, data):
    X, _, groups = data
    clf = band_power(donor).fit(X, groups % 2)
    assert (clf.recenter_, clf.test_subject_data_) == (None, TestSubjectData.NONE)
    assert clf.encoder_ is not donor.encoder_  # a copy
    several = band_power(donor).fit(X, np.arange(96) % 2)
    assert several.test_subject_data_ is TestSubjectData.ALL_UNLABELED
    with pytest.warns(UserWarning, match="one class"):
        band_power(donor, recenter="subject").fit(X, groups % 2)


def test_recordings_of_one_window_say_nothing_of_the_classes_of_recordings(donor, data):
    """Two nights of several classes, and 48 recordings of one window, which have one class."""
    X, y, _ = data
    groups = np.r_[np.repeat([1, 2], 24), np.arange(48) + 3]
    clf = band_power(donor, recenter=None).fit(X, y % 2, groups=groups)
    assert not clf.one_class_recordings_
    assert band_power(donor, recenter=None).fit(X, groups > 1, groups=groups).one_class_recordings_
    rows = np.arange(len(X))  # recordings of two windows have two classes
    clf = band_power(donor, recenter=None).fit(X, rows % 2, groups=rows // 2)
    assert not clf.one_class_recordings_


def test_subjects_of_arrays_are_given_or_unknown(donor, data, nights, fitted):
    X, y, groups = data
    array = np.stack([nights[i][0] for i in range(96)])
    named = vote(donor, C=0.1, sfreq=100).fit(array, y, groups=groups)
    found, expected = named.predict_proba(array, groups=groups), fitted.predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"recenter='subject'.* groups"):
        named.predict(array)
    unknown = band_power(donor, C=None, sfreq=100).fit(array, y)
    assert (unknown.recenter_, unknown.C_) == (None, {"band_power": 0.01})
    assert unknown.encoder_card_.finetune_subjects is None
    assert unknown.predict(array[:1]).shape == (1,)
    with pytest.raises(ValueError, match="recenter='subject'"):
        vote(donor, sfreq=100, recenter="subject").fit(array, y)


def test_labels_of_any_kind_and_windows_without_one(donor, data):
    X, y = data[0][::2], data[1][::2]
    names = np.array(["sleep", "wake"])[(y == 0).astype(int)]
    # Unlabeled windows are left out.
    known, y = np.arange(48) % 2 == 0, (y == 0).astype(int)
    partly = band_power(donor, unlabeled_label=-1).fit(X, np.where(known, y, -1))
    alone = band_power(donor).fit(X[known], y[known])
    np.testing.assert_array_equal(partly.predict_proba(X), alone.predict_proba(X))
    # Weights by label.
    heavy = band_power(donor, class_weight={"wake": 50.0}).fit(X, names)
    probe = LinearProbe(SubjectCentering(LogBandPower()), C=0.1, class_weight={"wake": 50.0})
    expected = probe.fit(X, names).predict_proba(X)
    np.testing.assert_allclose(heavy.predict_proba(X), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(encoder=None), ValueError, "^FewLabelsClassifier.*encoder=None"),
        (dict(encoder="small"), ValueError, "100 Hz"),
        (dict(recenter="all"), ValueError, "recenter must be one of 'auto', 'subject', or None"),
        (dict(views=["encoder", "encoder"]), ValueError, "views"),
    ],
)
def test_wrong_parameters_are_refused(donor, nights, arguments, error, message):
    with pytest.raises(error, match=message):
        vote(**{"encoder": donor, **arguments}).fit(nights)


@pytest.mark.parametrize("recenter", [None, "subject"])
def test_the_channels_that_are_there_vote(donor, data, recenter):
    """A plain recomputation: the others have the features that they have on average in fit."""
    X, y, groups = data
    train, test = groups != 4, groups == 4
    clf = vote(donor, C=0.1, recenter=recenter).fit(X[train], y[train])
    given = None if recenter is None else groups
    encoder, tangents, powers = features_of(donor, X, train, test, given)
    of_views = []
    for own, other in (encoder, powers):
        other = other.reshape(24, 3, -1).copy()
        other[:, 1] = own.mean(axis=0).reshape(3, -1)[1]
        of_views.append(probabilities_of(own, y[train], other.reshape(24, -1), 0.1))
    # The covariance of all channels, when C4 follows from the others as in the mean covariance.
    reference, whole = clf.tangent_space_.reference_, np.zeros((24, 3, 3))
    there, missing = [0, 2], 1
    own_channels = SpatialCovariance(channels=["C3", "F3"]).fit(X).transform(X[test])
    weights = np.linalg.inv(reference[np.ix_(there, there)]) @ reference[there, missing]
    rest = reference[missing, missing] - weights @ reference[there, missing]
    for covariance, own in zip(whole, own_channels, strict=True):
        covariance[np.ix_(there, there)] = own
        covariance[missing, there] = covariance[there, missing] = own @ weights
        covariance[missing, missing] = weights @ own @ weights + rest
    other = clf.tangent_space_.transform(whole)
    other = other if recenter is None else other - other.mean(axis=0)
    of_views.append(probabilities_of(tangents[0], y[train], other, 0.1))
    clf.predict_proba(X[test])  # caches the features of all channels
    lacking = X[test].with_montages([X.montages[0].pick([2, 0])])
    with pytest.warns(UserWarning, match=r"channels: C4 .*\(2 of 3\)"):
        found = clf.predict_proba(lacking)
    np.testing.assert_allclose(found, np.mean(of_views, axis=0), atol=1e-5)


def test_windows_with_and_without_a_channel_in_one_call(fitted, nights):
    lacking = copy.deepcopy(nights.datasets[1])
    lacking.raw.drop_channels(["C4"])
    with pytest.warns(UserWarning, match=r"channels: C4 .*24 of 48 windows.*\(2, 3 of 3\)"):
        found = fitted.predict_proba(BaseConcatDataset([nights.datasets[0], lacking]))
    np.testing.assert_allclose(found[:24], fitted.predict_proba(nights.datasets[0]), atol=1e-6)
    with pytest.warns(UserWarning, match="channels: C4"):
        np.testing.assert_allclose(found[24:], fitted.predict_proba(lacking), atol=1e-6)


def test_test_subjects_on_the_card_are_announced(donor, nights):
    seen = copy.copy(donor)
    seen.encoder_card_ = copy.copy(donor.encoder_card_)
    seen.encoder_card_.subjects = [2]
    given = dict(test_subjects=[2], verbose=0)
    with pytest.warns(UserWarning, match="was pretrained on windows of test subjects 2,"):
        leave_one_subject_out({"the vote": vote(seen, C=0.1)}, nights, **given)
    clf = vote(seen, C=0.1).fit(nights)
    card = clf.encoder_card_
    assert (card.subjects, card.finetune_subjects, card.sfreq) == ([2], [1, 2, 3, 4], 100.0)
    assert seen.encoder_card_.finetune_subjects == []


@pytest.mark.parametrize(
    "arguments", [{}, {"C": 0.5, "recenter": None, "channels": ["C4"], "views": VIEWS[1:]}]
)
def test_a_loaded_model_is_the_same(donor, fitted, nights, tmp_path, arguments):
    clf = vote(donor, **arguments).fit(nights) if arguments else fitted
    folder = clf.save(tmp_path / "model")
    with pytest.warns(UserWarning, match="not restored.*encoder=PARSEmbedder"):
        loaded = FewLabelsClassifier.load(folder, device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(nights), clf.predict_proba(nights))
    assert loaded.get_params() == {**clf.get_params(deep=False), "encoder": "small"}
    for name in ("classes_", "class_names_", "recenter_", "C_", "encoder_card_", "sfreq_"):
        assert str(getattr(loaded, name)) == str(getattr(clf, name)), name
    for name in ("preprocessing_", "amplitudes_", "n_chans_", "n_times_"):
        assert getattr(loaded, name) == getattr(clf, name), name
    names = [[ch["ch_name"] for ch in model.chs_info_] for model in (clf, loaded)]
    assert names[0] == names[1]
    assert loaded.load_report_.complete
    again = FewLabelsClassifier.load(loaded.save(tmp_path / "again"), device="cpu")
    np.testing.assert_array_equal(again.predict_proba(nights), clf.predict_proba(nights))


def test_the_folder_is_an_encoder_too_and_no_other_model(fitted, nights, tmp_path):
    folder = fitted.save(tmp_path / "model")
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors"]
    encoder, card, report = load_encoder(folder)
    assert same_weights(encoder, fitted.encoder_)
    assert card.finetune_subjects == [1, 2, 3, 4]
    assert report.complete
    with pytest.raises(ValueError, match="a saved FewLabelsClassifier, but a PARSClassifier"):
        PARSClassifier.load(folder)


def test_a_recording_is_one_subject(fitted, nights):
    raw = nights.datasets[0].raw
    frame = fitted.predict_raw(raw)
    expected = fitted.predict_proba(nights.datasets[0])
    found = frame.filter(like="probability_").to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    short = mne.io.RawArray(raw.get_data()[:, :1600], raw.info, verbose="error")
    with pytest.raises(ValueError, match=r"recenter='subject'.* 10 .* has 3"):
        fitted.predict_raw(short)
    with pytest.warns(UserWarning, match="channels: F3"):
        frame = fitted.predict_raw(raw.copy().drop_channels(["F3"]))
    assert frame.attrs["findings"]["missing_channels"] == ["F3"]
    assert (frame["n_chans"] == 2).all()


def test_the_training_cost_is_that_of_the_encoder(donor, nights, tmp_path):
    ensemble = vote(str(donor.save(tmp_path / "encoder")), C=0.1)
    costs = cost_table({"feature ensemble": ensemble}, nights).set_index("method")
    assert costs.loc["feature ensemble", "finetuning_steps"] == 0
