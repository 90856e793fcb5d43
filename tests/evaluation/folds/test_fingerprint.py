"""Descriptions change with everything that results depend on, and with nothing else."""

from __future__ import annotations

import json
from fractions import Fraction

import mne
import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.augmentation import GaussianNoise
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support.small_estimators import classifier
from support.subjects import with_subject

from braindecode_pars import PARSClassifier, PARSEmbedder, PatchEncoder, as_sklearn
from braindecode_pars._common.files import differences
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.evaluation.cache import (
    describe_corpus,
    describe_estimator,
    digest,
    digest_array,
    with_seed,
)
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.windows.door import as_windows


def test_a_description_has_class_and_parameters_but_no_seeds():
    pipe = make_pipeline(LogBandPower(), LogisticRegression(C=2, random_state=1, verbose=0))
    other = make_pipeline(LogBandPower(), LogisticRegression(C=3, random_state=2, verbose=1))
    described = json.loads(json.dumps(describe_estimator(pipe)))
    (found,) = differences(described, json.loads(json.dumps(describe_estimator(other))))
    assert found == "steps[1][1].C is 3, was 2"
    assert "LogisticRegression" in json.dumps(described)


def test_the_difference_of_one_parameter_is_one_clause():
    one, two = (describe_estimator(LogisticRegression(C=c)) for c in (2, 3))
    assert list(differences(one, two)) == ["C is 3, was 2"]
    assert list(differences({"a": 1}, {"b": [2]})) == [
        "b is [2], was not set",
        "a is not set, was 1",
    ]


def test_a_description_changes_with_the_weights_of_the_encoder(tmp_path):
    torch.manual_seed(0)
    encoders = [PatchEncoder(100, 16, 1, 2, 32) for _ in range(2)]
    one, two = (describe_estimator(PARSClassifier(encoder=encoder)) for encoder in encoders)
    (found,) = differences(one, two)
    assert found.startswith("encoder.weights is ")
    assert one == describe_estimator(PARSClassifier(encoder=encoders[0]))


def test_a_description_changes_with_the_content_of_an_encoder_folder(nights, tmp_path):
    tiny = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, verbose=0)
    described = []
    for seed in (0, 1):
        embedder = PARSEmbedder(pretrain_epochs=1, random_state=seed, **tiny).fit(nights)
        embedder.save(tmp_path / "encoder")
        described.append(describe_estimator(PARSClassifier(encoder=tmp_path / "encoder")))
    (found,) = differences(*described)
    assert found.startswith("encoder.content is ")


def test_objects_are_described_by_their_attributes():
    def described(probability):
        noise = [GaussianNoise(probability, std=0.1)]
        return describe_estimator(PARSClassifier(augmentation=noise))

    assert json.dumps(described(0.5)) == json.dumps(described(0.5))
    assert described(0.5) != described(0.25)


def test_a_description_has_no_memory_addresses():
    clf = PARSClassifier(augmentation=[GaussianNoise(0.5)], encoder=PatchEncoder(100, 16, 1, 2, 32))
    inner = describe_estimator(FunctionTransformer(lambda x: lambda: x))
    assert " at 0x" not in json.dumps([describe_estimator(clf), inner])
    assert inner == describe_estimator(FunctionTransformer(lambda x: lambda: x))
    assert inner != describe_estimator(FunctionTransformer(lambda x: -x))


@pytest.mark.parametrize("change", ["labels", "subjects", "samples"])
def test_other_data_have_another_description(nights, change):
    def described(windows):
        return json.loads(json.dumps(describe_corpus(Corpus.of(windows, "", -1))))

    if change == "labels":
        other = with_subject(nights, 2, target=0)
    elif change == "subjects":
        other = with_subject(nights, 2, subject=7)
    else:
        other = with_subject(nights, 1)
        other.datasets[0].raw = other.datasets[0].raw.copy()
        other.datasets[0].raw._data = np.asarray(other.datasets[0].raw._data) * 1.1
    found, *_ = differences(described(nights), described(other))
    assert found.startswith(f"{change}")
    assert described(nights) == described(with_subject(nights, 1))


def test_samples_in_another_order_have_another_description(nights):
    X, y, groups = as_sklearn(nights)
    windows = np.stack([np.asarray(X[i]) for i in range(len(y))])
    shuffled = np.random.default_rng(0).permuted(windows, axis=-1)
    one, two = (
        describe_corpus(Corpus("d", as_windows(w), y, groups, y >= 0, -1, np.full(len(y), None)))
        for w in (windows, shuffled)
    )
    found = list(differences(one, two))
    assert [clause.split(" is ")[0] for clause in found] == [f"samples.{s}" for s in (1, 2, 3, 4)]


@pytest.mark.parametrize("window", [0, 1, 37, 95])
def test_the_last_bit_of_one_sample_of_one_window_counts(nights, window):
    X, y, groups = as_sklearn(nights)
    windows = np.stack([X[i] for i in range(len(y))])
    changed = windows.copy()
    changed[window, 2, 1000] = np.nextafter(changed[window, 2, 1000], 1)
    one, two = (
        describe_corpus(Corpus("d", as_windows(w), y, groups, y >= 0, -1, np.full(len(y), None)))
        for w in (windows, changed)
    )
    (found,) = differences(one, two)
    assert found.startswith(f"samples.{groups[window]} is ")


def with_info(windows, edit):
    """Edit the info of the first recording."""
    other = with_subject(windows, 1)
    raw = other.datasets[0].raw = other.datasets[0].raw.copy()
    edit(raw)
    return other


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        (lambda raw: raw.rename_channels({"C3": "CP3"}), {"channels", "sensors"}),
        (lambda raw: raw.info.update(bads=["C3"]), {"sensors"}),
        (lambda raw: raw.info["chs"][0]["loc"].__setitem__(0, 0.5), {"sensors"}),
    ],
)
def test_channels_of_one_recording_count(nights, edit, names):
    assert "C3" in nights.datasets[0].raw.ch_names
    before, after = (
        describe_corpus(Corpus.of(windows, "", -1)) for windows in (nights, with_info(nights, edit))
    )
    assert {name for name in before if before[name] != after[name]} == names


@pytest.mark.parametrize(
    "edit",
    [
        lambda info: info.update(bads=["C3"]),
        lambda info: info["chs"][0]["loc"].__setitem__(0, 0.5),
    ],
)
@pytest.mark.parametrize("source", ["Epochs", "list of Epochs"])
def test_channels_of_every_source_count(edit, source):
    info = mne.create_info(["C3", "C4"], 100, "eeg")
    epochs = mne.EpochsArray(np.ones((4, 2, 10)), info, verbose=0)
    found = []
    for _ in range(2):
        windows = {
            "Epochs": epochs,
            "list of Epochs": [epochs[i] for i in range(4)],
        }[source]
        y, groups = np.array([0, 1, 0, 1]), np.array([1, 1, 2, 2])
        corpus = Corpus("d", as_windows(windows), y, groups, y >= 0, -1, np.full(len(y), None))
        found.append(describe_corpus(corpus)["sensors"])
        edit(epochs.info)
    assert found[0] != found[1]


def test_every_entry_of_the_descriptions_counts(nights):
    other = with_subject(nights, 2, session="evening")
    one, two = (describe_corpus(Corpus.of(windows, "", -1)) for windows in (nights, other))
    (found,) = differences(one, two)
    assert found.startswith("descriptions is ")


@pytest.mark.parametrize(
    "make",
    [
        lambda n: pd.Series([1, n]),
        lambda n: bytes([n]),
        lambda n: Fraction(1, n),
        lambda n: torch.full((2,), 2**40 + n),
        lambda n: FrozenEstimator(DummyClassifier().fit([[0]], [n])),
    ],
)
def test_the_content_of_every_parameter_counts(make):
    one, same, other = (
        describe_estimator(FunctionTransformer(kw_args={"a": make(n)})) for n in (1, 1, 2)
    )
    assert one == same != other


def test_seeds_that_no_protocol_sets_count():
    class Noise:
        def __init__(self, random_state):
            self.random_state = random_state

    described = [describe_estimator(PARSClassifier(augmentation=[Noise(n)])) for n in (1, 2)]
    assert list(differences(*described)) == ["augmentation[0].random_state is 2, was 1"]


def test_parameters_deep_inside_count():
    def nested(c):
        estimator = LogisticRegression(C=c)
        for _ in range(6):
            estimator = make_pipeline(estimator)
        return describe_estimator(estimator)

    (found,) = differences(nested(1), nested(2))
    assert found.endswith("C is 2, was 1")


def test_an_object_that_contains_itself_is_described():
    noise = GaussianNoise(0.5)
    noise.itself = [noise]
    described = describe_estimator(PARSClassifier(augmentation=[noise]))
    assert "GaussianNoise that contains this" in json.dumps(described)


def test_an_encoder_of_the_hub_is_described_by_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr("braindecode_pars.evaluation.cache.model_folder", lambda source: tmp_path)
    described = []
    for content in ("published", "published anew"):
        (tmp_path / "encoder.json").write_text(content)
        described.append(describe_estimator(PARSClassifier(encoder="hf://owner/name")))
    (found,) = differences(*described)
    assert found.startswith("encoder.content is ")


def test_all_layers_and_the_classes_of_a_fitted_classifier_count(nights):
    """Two classifiers may share a frozen encoder and differ in what follows it."""
    _, y, _ = as_sklearn(nights)
    one = classifier(pretext=None, freeze_encoder=True, validation=0).fit(nights, y)
    other = classifier(pretext=None, freeze_encoder=True, validation=0).fit(nights, 4 - y)
    renamed = classifier(pretext=None, freeze_encoder=True, validation=0).fit(nights, y + 10)
    described = [describe_estimator(FrozenEstimator(clf)) for clf in (one, other, renamed)]
    assert described[0] != described[1]
    assert described[0] != described[2]


def test_every_part_gets_the_seed():
    pipe = with_seed(make_pipeline(PARSEmbedder(), LogisticRegression()), 7)
    assert [part.random_state for _, part in pipe.steps] == [7, 7]


def test_a_given_encoder_keeps_its_seed():
    classifier = with_seed(PARSClassifier(encoder=PARSEmbedder(random_state=1)), 7)
    assert (classifier.random_state, classifier.encoder.random_state) == (7, 1)


def test_a_digest_changes_with_every_part():
    assert digest(1, "a") == digest(1, "a") != digest(1, "b")
    assert len(digest(1)) == 12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64])
def test_the_last_bit_of_a_tensor_counts(dtype):
    one = torch.full((2, 3), 2**30 if dtype is torch.int64 else 1.0, dtype=dtype)
    other = one.clone()
    other.view(torch.uint8)[0, 0] ^= 1
    assert digest_array(one) == digest_array(one.clone()) != digest_array(other)


def test_type_and_shape_of_an_array_count():
    array = np.zeros((2, 6), np.float32)
    others = [array.reshape(3, 4), array.view(np.int32), array.astype(object)]
    assert len({digest_array(array), *map(digest_array, others)}) == 4
    assert digest_array(np.arange(6).reshape(2, 3).T) == digest_array(
        np.arange(6).reshape(2, 3).T.copy()
    )
    assert digest_array(torch.ones(())) != digest_array(torch.zeros(()))
