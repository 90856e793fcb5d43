"""Probing analyses: scores against reference computations, held-out units, draws, errors."""

from types import SimpleNamespace

import mne
import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.datasets import BaseConcatDataset

from braindecode_pars import PatchEncoder
from braindecode_pars.evaluation import audit_encoder, audits
from braindecode_pars.evaluation.subject_information import (
    accuracies,
    explained_variance,
    permuted_explained_variances,
)
from braindecode_pars.models import embed_signals
from braindecode_pars.pretrained import EncoderCard
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.windows.convert import as_windows

NAMES = ["C3", "Cz", "C4", "Pz", "Oz", "Fz", "F3", "F4", "P3", "P4"]
SFREQ = 96.0
N_TIMES = 192
QUESTIONS = ("subject", "session", "channel", "corpus")
SUBJECT_ROWS = ("variance by subject", "subject, erased")


def dataset(n_subjects=4, sessions=(None,), corpora=(None,), n_chans=3, n_windows=6, sfreq=SFREQ):
    """Return windows of 192 samples, sums of 20 functions; a recording for each session."""
    rng = np.random.default_rng(0)
    functions = np.cos(np.pi * np.outer(np.arange(1, 21), np.arange(N_TIMES)) / N_TIMES)
    info = mne.create_info(NAMES[:n_chans], sfreq, "eeg")
    result = []
    for subject in range(n_subjects):
        for session in sessions:
            signals = rng.standard_normal((n_chans, n_windows, 20)) @ functions
            raw = mne.io.RawArray(1e-5 * signals.reshape(n_chans, -1), info, verbose="error")
            windows = fixed_windows(raw, N_TIMES / sfreq)
            corpus = corpora[subject % len(corpora)]
            windows.set_description(dict(subject=subject, session=session, corpus=corpus))
            result.append(windows)
    return BaseConcatDataset(result)


def with_card(subjects=(), patch_size=N_TIMES, sfreq=SFREQ):
    """Return an encoder with a linear patch embedding and an encoder card."""
    torch.manual_seed(0)
    encoder = PatchEncoder(patch_size, embed_dim=32, num_layers=1, num_heads=2, mlp_dim=32)
    card = EncoderCard(sfreq=sfreq, subjects=list(subjects))
    return SimpleNamespace(encoder_=encoder, encoder_card_=card)


def value(audit, name, features):
    chosen = audit[(audit["property"] == name) & (audit["features"] == features)]
    return chosen["value"].item()


@pytest.fixture
def no_classifiers(monkeypatch):
    """An audit without classifiers, which take most of its time."""
    monkeypatch.setattr(audits.subject_information, "accuracies", lambda *_, **__: np.zeros(2))


@pytest.fixture
def regressions_only(no_classifiers, monkeypatch):
    module = audits.subject_information
    monkeypatch.setattr(module, "permuted_explained_variances", lambda *_, **__: np.zeros(1))


@pytest.fixture(scope="module")
def audit():
    source = dataset(sessions=(1, 2), corpora=("a", "b"))
    with pytest.MonkeyPatch.context() as patch:
        module = audits.subject_information
        patch.setattr(module, "permuted_explained_variances", lambda *_, **__: np.zeros(1))
        return audit_encoder({"one": with_card(), "two": with_card()}, source)


def test_one_row_for_each_encoder_features_and_property(audit):
    signal = list(audits.PROPERTIES.values())
    assert audit["property"].tolist() == [*signal, *QUESTIONS, *SUBJECT_ROWS] * 6
    assert audit["encoder"].tolist() == ["one"] * (len(audit) // 2) + ["two"] * (len(audit) // 2)
    measures = audit.drop_duplicates("property").set_index("property")
    assert (measures.loc[signal, ["measure", "chance"]] == ["R2", 0]).all(axis=None)
    assert (measures.loc[[*QUESTIONS], "measure"] == "balanced accuracy").all()
    assert measures.loc[[*QUESTIONS], "chance"].tolist() == [1 / 4, 1 / 2, 1 / 3, 1 / 2]
    held_out = ["recordings", "subjects", "subjects", "subjects"]
    assert measures.loc[[*QUESTIONS], "held_out"].tolist() == held_out
    erased = audit[audit["property"] == "subject, erased"]
    np.testing.assert_allclose(erased["value"], 1 / 4)
    assert audit.attrs == dict(n_signals=144, n_windows=48, n_subjects=4)
    # Equal encoders, windows and seeds.
    one, two = (audit[audit["encoder"] == name].reset_index() for name in ("one", "two"))
    pd.testing.assert_series_equal(one["value"], two["value"])
    wide = audits.audit_table(one)
    for row in wide.itertuples():
        assert row.encoder == value(one, row.property, "encoder")
        assert row[5] == value(one, row.property, "random encoder")


def test_features_and_properties_are_of_the_same_channel_and_window():
    windows = as_windows(dataset(n_chans=10))
    signals = audits._draw_signals(windows, 11, np.random.default_rng(0))
    assert len(signals) == 11 * 8  # of ten channels
    assert len(signals.table[["window", "channel"]].drop_duplicates()) == 88
    source = with_card(patch_size=96)
    (kind, features), *_ = audits._features("", source, signals, 0)
    assert kind == "encoder"
    for row in (0, 40, 87):
        signal, channel = signals[row], NAMES.index(signals.table["channel"].iloc[row])
        assert signal.shape == (1, N_TIMES)
        place = [i for i, window in enumerate(windows) if (window[channel] == signal[0]).all()]
        assert windows.groups[place].tolist() == [signals.groups[row]]
        with torch.inference_mode():
            expected = embed_signals(source.encoder_, torch.from_numpy(signal))[0]
        np.testing.assert_allclose(features[row], expected, atol=1e-5)


def test_subjects_are_held_out(regressions_only):
    """Features with subject information only do not predict properties of other subjects."""
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(10), 20)
    of_subject = rng.standard_normal((10, 30))
    features = of_subject[subjects] + 0.1 * rng.standard_normal((200, 30))
    properties = pd.DataFrame({"trait": rng.standard_normal(10)[subjects]})

    assert read(features, properties, subjects)["trait"]["value"] < 0.2
    assert read(features, properties, rng.permutation(subjects))["trait"]["value"] > 0.95


def test_explained_variance_is_corrected_by_permutations(no_classifiers):
    """Ten means of noise differ, too: 9 of 199 degrees of freedom."""
    features = np.random.default_rng(0).standard_normal((200, 150))
    subjects = np.repeat(np.arange(10), 20)
    assert explained_variance(features, subjects) == pytest.approx(9 / 199, abs=0.005)
    row = read(features, pd.DataFrame({"trait": features[:, 0]}), subjects)["variance by subject"]
    assert row["value"] == pytest.approx(0, abs=0.01)
    features += subjects[:, None] / 10
    row = read(features, pd.DataFrame({"trait": features[:, 0]}), subjects)["variance by subject"]
    share = explained_variance(features, subjects)
    null = permuted_explained_variances(features, subjects, subjects, subjects * 0).mean()
    assert row["value"] == pytest.approx((share - null) / (1 - null))
    assert row["value"] < share - 0.01


def read(features, properties, subjects) -> dict[str, dict]:
    """Return the rows of an audit by their properties; each subject is a recording."""
    half = np.flatnonzero(np.arange(len(subjects)) % 2)
    question = audits._Target(subjects, [(half, half)] * 2, "")
    signals = SimpleNamespace(table=pd.DataFrame(dict(recording=subjects)), labels=subjects * 0)
    rows = audits._probe(features, signals, properties, {"subject": question})
    return {row["property"]: row for row in rows}


def test_no_subject_recording_or_time_block_is_on_both_sides():
    """A subject with two recordings has one in each of two folds; other subjects have three."""
    for sessions, unit in (((1, 2, 3), "recording"), ((1,), "window")):
        source = dataset(sessions=sessions, corpora=("a", "b"), n_windows=10)
        if unit == "recording":
            source = BaseConcatDataset([*source.datasets[:5], *source.datasets[6:]])
        signals = audits._draw_signals(source, 1000, np.random.default_rng(0))
        subjects, units = signals.groups, signals.table[unit].to_numpy()
        result = dict(audits._targets(signals))
        assert list(result) == [
            name for name in QUESTIONS if name != "session" or len(sessions) > 1
        ]
        assert len(result["subject"].folds) == (2 if unit == "recording" else 5)
        for name, (labels, folds, _) in result.items():
            assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(labels)))
            held_out = units if name == "subject" else subjects
            for train, test in folds:
                assert not set(held_out[train]) & set(held_out[test])
                assert set(labels[train]) == set(labels) == set(labels[test])
        if unit == "window":  # of ten a subject, a block has two neighbors
            blocks = [{*(units[test] % 10 // 2)} for _, test in result["subject"].folds]
            assert blocks == [{0}, {1}, {2}, {3}, {4}]


@pytest.mark.parametrize("sessions", [("one", None), ("one",), None])
def test_sessions_that_subjects_do_not_share_are_left_out(sessions):
    source = dataset(sessions=sessions or (1, 2))
    if sessions is None:
        names = [f"{subject}-{i}" for i, subject in enumerate(source.description["subject"])]
        source.set_description({"session": names}, overwrite=True)
    signals = audits._draw_signals(source, 1000, np.random.default_rng(0))
    assert list(dict(audits._targets(signals))) == ["subject", "channel"]


def test_r2_against_a_plain_ridge_regression():
    """Each of two subjects is tested once; value and sd are over these folds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((42, 3)) * [1, 5, 9] + 2
    y = np.column_stack([X @ [1, 0.2, 0] + rng.standard_normal(42), X[:, 1]])
    subjects = np.repeat([0, 1], [30, 12])
    rows = read(X, pd.DataFrame(y, columns=["a", "b"]), subjects)
    one, other = (slice(30), slice(30, None))
    folds = np.array([plain_r2(X[i], y[i], X[j], y[j]) for i, j in ((one, other), (other, one))])
    for name, expected in zip("ab", folds.T, strict=True):
        assert rows[name]["value"] == pytest.approx(expected.mean(), rel=1e-6)
        assert rows[name]["sd"] == pytest.approx(
            np.sqrt(np.square(expected - expected.mean()).sum())
        )


def plain_r2(X, y, test, true):
    mean, sd = X.mean(axis=0), X.std(axis=0)
    Z, Z_test = (X - mean) / sd, (test - mean) / sd

    def fitted(Z, y, alpha):
        center = Z.mean(axis=0)
        weights = np.linalg.solve(
            (Z - center).T @ (Z - center) + alpha * np.eye(3), (Z - center).T @ (y - y.mean())
        )
        return lambda new: (new - center) @ weights + y.mean()

    expected = []
    for own, own_true in zip(y.T, true.T, strict=True):
        errors = {}
        for alpha in audits._ALPHAS:
            left_out = [
                own[i] - fitted(np.delete(Z, i, 0), np.delete(own, i), alpha)(Z[i])
                for i in range(len(Z))
            ]
            errors[alpha] = np.square(left_out).sum()
        predicted = fitted(Z, own, min(errors, key=errors.get))(Z_test)
        total = np.square(own_true - own_true.mean()).sum()
        expected.append(1 - np.square(own_true - predicted).sum() / total)
    return expected


def test_balanced_accuracy_is_the_mean_recall_of_the_classes_of_a_test():
    X = np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]] * 10)
    y = np.array([0, 0, 1, 1, 2, 2] * 10)
    test, true = np.array([[0.0], [0.0], [0.0], [0.0], [2.0]]), np.array([0, 2, 2, 2, 2])
    both, folds = np.concatenate([X, test]), [(np.arange(60), np.arange(60, 65))]
    assert accuracies(both, np.concatenate([y, true]), folds).tolist() == [(1 + 1 / 4) / 2]


@pytest.mark.slow
def test_seeds_draw_other_windows_and_random_encoders(regressions_only):
    source = dataset(n_chans=2, n_windows=3)
    one, two = (audits._draw_signals(source, 5, np.random.default_rng(seed))[0] for seed in (0, 1))
    assert not np.array_equal(one, two)
    # All windows, so that only the random encoder depends on the seed
    result = [audit_encoder(with_card(), source, seed=seed) for seed in (0, 0, 1)]
    values = [value(each, "line length", "random encoder") for each in result]
    assert values[0] == values[1] != values[2]


def test_subjects_of_the_pretraining_are_a_warning(regressions_only):
    source = dataset(corpora=("a",))
    with pytest.warns(UserWarning, match=r"old was pretrained on windows of test subjects 2,"):
        audit_encoder({"old": with_card(subjects=["a:2", "b:3"])}, source)
    with pytest.warns(UserWarning, match="encoder of encoder are unknown"):
        audit_encoder(with_card().encoder_, source)


def test_invalid_windows_raise():
    array = np.random.default_rng(0).standard_normal((4, 2, N_TIMES))
    for message, source, windows in (
        (r"96 Hz.*100 Hz.*[Rr]esample", with_card(sfreq=100.0), dataset()),
        ("two seconds", with_card(sfreq=128.0), dataset(sfreq=128.0)),
        ("one subject", with_card(), dataset(n_subjects=1)),
        ("audit_encoder requires the subject", with_card(), as_windows(array, sfreq=SFREQ)),
        (
            "sampling rate of the windows is unknown",
            with_card(),
            as_windows(array, groups=[1, 1, 2, 2]),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            audit_encoder(source, windows)
