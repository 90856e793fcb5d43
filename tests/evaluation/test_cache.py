"""A folder of results resumes while nothing changes that they depend on."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.augmentation import GaussianNoise
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support.small_estimators import classifier
from support.subjects import with_subject

from braindecode_pars import (
    FewLabelsClassifier,
    PARSClassifier,
    PARSEmbedder,
    PatchEncoder,
    as_sklearn,
)
from braindecode_pars._common import model_files
from braindecode_pars._common.files import changed_settings
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out
from braindecode_pars.evaluation.cache import (
    describe_corpus,
    describe_estimator,
    digest_array,
    file_of,
    open_folder,
)
from braindecode_pars.evaluation.splitting import Corpus, Fold, with_seed
from braindecode_pars.windows.convert import as_windows

SETTINGS = {"protocol": "compare", "datasets": {"d": {"n": 3}}, "methods": {"A/ä b": {"C": 1}}}
FORMAT = SETTINGS | {"format": "braindecode_pars scores"}
FOLD = Fold(
    protocol="compare",
    dataset="d",
    method="A/ä b",
    n_train_subjects=2,
    seed=0,
    estimator=DummyClassifier(),
    train=np.arange(3),
    test=np.arange(3, 5),
    test_subjects=[1],
)


def save_one_fold(path) -> str:
    """Save a finished fold in a folder of results, and return the file of the fold."""
    folder = open_folder(path, SETTINGS)
    folder.put(file_of(FOLD, folder), {"key": FOLD.key, "predicted": [0, 1, 1]})
    return file_of(FOLD, folder)


def test_settings_can_be_added_but_not_changed(tmp_path):
    open_folder(tmp_path, SETTINGS | {"methods": {"A/ä b": {"C": "mistyped"}}})
    file = tmp_path / save_one_fold(tmp_path)  # without a fold, they may change
    assert {f.name for f in file.parent.iterdir()} == {file.name, "settings.json"}
    open_folder(tmp_path, SETTINGS | {"methods": {"B": {"C": 2}}})
    settings = json.loads((tmp_path / "cache/settings.json").read_text())
    assert settings["methods"] == {"A/ä b": {"C": 1}, "B": {"C": 2}}
    with pytest.raises(ValueError, match=r"methods\.B\.C .* 5, .* 2"):
        open_folder(tmp_path, SETTINGS | {"methods": {"B": {"C": 5}}})
    with pytest.raises(ValueError, match=r"protocol .*'transfer'.*'compare'"):
        open_folder(tmp_path, SETTINGS | {"protocol": "transfer"})


def test_file_names_are_readable_and_unique(tmp_path):

    def name(fold, **settings):
        return file_of(fold, ResultsFolder(tmp_path, "an evaluation", SETTINGS | settings))

    assert name(FOLD).startswith("cache/A-ä-b_d_subject-1_n2_seed0_")
    names = {
        name(FOLD),
        name(replace(FOLD, method="A-ä-b"), methods={"A-ä-b": {"C": 1}}),
        name(FOLD, datasets={"d": {"n": 4}}),
        name(FOLD, methods={"A/ä b": {"C": 2}}),
        *(
            name(replace(FOLD, **{windows: np.arange(9)}))
            for windows in ("train", "test", "valid", "pretrain")
        ),
    }
    assert len(names) == 8
    assert name(FOLD, methods={}) is None


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("cache/settings.json", '{"protocol"', r"settings\.json"),
        ("cache/settings.json", "{}", "protocol"),
        ("cache/settings.json", json.dumps(FORMAT | {"version": 3}), "version is 4, was 3"),
        ("scores.csv", "mine", r"scores\.csv"),  # of another program
    ],
)
def test_damaged_settings_and_files_of_others_raise(tmp_path, file, text, message):
    file = tmp_path / file
    if file.parent.name == "cache":
        save_one_fold(tmp_path)
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        open_folder(tmp_path, SETTINGS)
    assert file.read_text() == text


def test_processes_that_open_a_folder_at_once_keep_the_settings_of_all(tmp_path):
    save_one_fold(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        for name in "BCDEFGHIJKLM":
            pool.submit(open_folder, tmp_path, SETTINGS | {"methods": {name: {"C": 1}}})
    settings = json.loads((tmp_path / "cache/settings.json").read_text())
    assert sorted(settings["methods"]) == ["A/ä b", *"BCDEFGHIJKLM"]


def test_a_description_has_class_and_parameters_but_no_seeds():
    pipe = make_pipeline(LogBandPower(), LogisticRegression(C=2, random_state=1, verbose=0))
    other = make_pipeline(LogBandPower(), LogisticRegression(C=3, random_state=2, verbose=1))
    described = json.loads(json.dumps(describe_estimator(pipe)))
    (result,) = changed_settings(described, json.loads(json.dumps(describe_estimator(other))))
    assert result == "steps[1][1].C is 3, was 2"
    assert "LogisticRegression" in json.dumps(described)


def test_the_file_of_a_task_of_the_user_counts_wherever_it_is(own_task, tmp_path):
    def described(file):
        return describe_estimator(
            PARSClassifier("joint", pretext_params={"tasks": {f"{file}:Slope": 1.0}})
        )

    before = described(own_task)
    (tmp_path / "elsewhere").mkdir()
    assert described(shutil.copy(own_task, tmp_path / "elsewhere")) == before
    own_task.write_text(own_task.read_text().replace("return 1.0", "return 2.0"))
    assert changed_settings(before, described(own_task))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", dict(target=0)),
        ("subjects", dict(subject=7)),
        ("descriptions", dict(session="evening")),
    ],
)
def test_other_data_have_another_description(nights, name, change):
    def described(windows):
        return json.loads(json.dumps(describe_corpus(Corpus.of(windows, "", -1))))

    result, *_ = changed_settings(described(nights), described(with_subject(nights, 2, **change)))
    assert result.startswith(name)
    assert described(nights) == described(with_subject(nights, 1))


def test_every_bit_of_every_window_and_their_order_count(nights):
    X, y, groups = as_sklearn(nights)
    windows = np.stack([X[i] for i in range(len(y))])

    def described(X):
        none = np.full(len(y), None)
        return describe_corpus(Corpus("d", as_windows(X), y, groups, y >= 0, -1, none))["samples"]

    before = described(windows)
    shuffled = described(np.random.default_rng(0).permuted(windows, axis=-1))
    assert all(before[subject] != shuffled[subject] for subject in before)
    for window in (0, 95):
        changed = windows.copy()
        changed[window, 2, 1000] = np.nextafter(changed[window, 2, 1000], 1)
        after = described(changed)
        assert {one for one in before if before[one] != after[one]} == {str(groups[window])}


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
    other = with_subject(nights, 1)
    other.datasets[0].raw = other.datasets[0].raw.copy()
    edit(other.datasets[0].raw)
    before, after = (describe_corpus(Corpus.of(each, "", -1)) for each in (nights, other))
    assert {name for name in before if before[name] != after[name]} == names


class Noise:
    """An augmentation with a seed that no protocol sets."""

    def __init__(self, random_state):
        self.random_state = random_state


def encoder_of(seed):
    torch.manual_seed(seed)
    return PatchEncoder(100, 16, 1, 2, 32)


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda n: FunctionTransformer(kw_args={"a": pd.Series([1, n])}), "kw_args.a"),
        (lambda n: FunctionTransformer(kw_args={"a": torch.full((2,), 2**40 + n)}), "kw_args.a"),
        (lambda n: FunctionTransformer([np.log, np.exp][n - 1]), "func"),
        (lambda n: FrozenEstimator(DummyClassifier().fit([[0]], [n])), "estimator.learned"),
        (lambda n: PARSClassifier(encoder=encoder_of(n)), "encoder"),
        (lambda n: PARSClassifier(augmentation=[GaussianNoise(n / 2)]), "augmentation[0]"),
        (lambda n: PARSClassifier(augmentation=[Noise(n)]), "augmentation[0]"),
    ],
)
def test_the_content_of_every_parameter_counts(make, place):
    one, same, other = (describe_estimator(make(n)) for n in (1, 1, 2))
    assert one == same
    assert " at 0x" not in json.dumps(one)
    (change,) = changed_settings(one, other)
    assert change.startswith(f"{place} is ")


def test_folds_of_a_method_without_a_description_run_again(short_nights, tmp_path):
    fits = []

    def power(X, calls=fits):
        calls.append(len(X))
        return LogBandPower().fit_transform(X)

    methods = {
        "lambda": make_pipeline(FunctionTransformer(lambda X: power(X)), GaussianNB()),
        "plain": make_pipeline(LogBandPower(), GaussianNB()),
    }
    for n_calls in (1, 2):
        with pytest.warns(UserWarning, match=r"lambda \(<lambda> cannot be pickled\)"):
            leave_one_subject_out(
                methods, short_nights, test_subjects=[3], verbose=0, out=tmp_path / "scores"
            )
        files = {file.name.partition("_")[0] for file in (tmp_path / "scores/cache").glob("*.json")}
        assert files == {"plain", "settings.json"}
        assert len(fits) == 2 * n_calls  # fit and predict


def test_an_encoder_of_the_hub_is_described_by_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr(model_files, "model_folder", lambda source: tmp_path)
    described = []
    for content in ("published", "published anew"):
        (tmp_path / "encoder.json").write_text(content)
        described.append(describe_estimator(PARSClassifier(encoder="hf://owner/name")))
    (result,) = changed_settings(*described)
    assert result.startswith("encoder is ")


@pytest.mark.slow
def test_what_follows_a_frozen_encoder_and_the_classes_count(brief):
    """Two classifiers may share an encoder and differ in the head, or in the centering."""
    X, y, _ = as_sklearn(brief)
    X, y = X[np.arange(48)], y[:48]

    def described(estimator, y):
        torch.manual_seed(0)
        fitted = FrozenEstimator(clone(estimator).fit(X, y))
        return json.dumps(describe_estimator(fitted))

    network = classifier(pretext=None, freeze_encoder=True, validation=0)
    ensemble = FewLabelsClassifier(encoder_of(0), verbose=0)
    for clf in (network, ensemble):
        one, same, labels, names = (described(clf, each) for each in (y, y, 4 - y, y + 10))
        assert one == same
        assert len({one, labels, names}) == 3
    assert described(clone(ensemble).set_params(recenter=None), y) != one


def test_all_estimators_get_the_seed_except_a_pretrained_encoder():
    embedder = PARSEmbedder(random_state=1)
    pipe = with_seed(make_pipeline(PARSEmbedder(encoder=embedder), LogisticRegression()), 7)
    assert [part.random_state for _, part in pipe.steps] == [7, 7]
    assert embedder.random_state == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_the_last_bit_of_a_tensor_counts(dtype):
    one = torch.full((2, 3), 2**30, dtype=dtype)
    other = one.clone()
    other.view(torch.uint8)[0, 0] ^= 1
    assert digest_array(one) == digest_array(one.clone()) != digest_array(other)


def test_type_and_shape_of_an_array_count():
    array = np.zeros((2, 6), np.float32)
    others = [array.reshape(3, 4), array.view(np.int32), array.astype(object)]
    assert len({digest_array(array), *map(digest_array, others)}) == 4
    transposed = np.arange(6).reshape(2, 3).T
    assert digest_array(transposed) == digest_array(transposed.copy())


def test_packages_count_by_their_version(monkeypatch):
    before = describe_estimator(LogisticRegression())
    assert {*before["versions"]} == {"braindecode_pars", "braindecode", "torch", "sklearn"}
    monkeypatch.setattr("torch.__version__", "9")
    assert describe_estimator(LogisticRegression()) != before
