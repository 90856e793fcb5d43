"""Saving and loading a fitted classifier."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.base import clone
from support.model_files import change_description, change_tensors
from support.own_task import forget
from support.small_estimators import classifier, embedder, same_weights
from torch import nn

from braindecode_pars import PARSClassifier, PARSNet, as_sklearn, datasets
from braindecode_pars.pretext import PARS
from braindecode_pars.pretrained import load_encoder


@pytest.fixture(scope="module")
def fitted(nights):
    y = np.array(["W", "N1", "N2", "N3", "R"])[as_sklearn(nights)[1]]
    return classifier(electrode_position=True, class_weight={"W": 2.0}).fit(nights, y)


@pytest.fixture
def folder(fitted, tmp_path):
    return fitted.save(tmp_path / "model")


def test_part_losses_class_weights_and_names_of_classes_are_saved(nights, tmp_path):
    clf = classifier(pretext="joint", class_weight={0: 2.0, 3: 1.5}).fit(nights)
    loaded = PARSClassifier.load(clf.save(tmp_path))
    assert loaded.history_.equals(clf.history_)
    assert loaded.class_weight == {0: 2.0, 3: 1.5}
    assert loaded.class_names_ == {0: "W", 1: "N1", 2: "N2", 3: "N3", 4: "R"}


def test_other_files_are_not_overwritten(fitted, tmp_path):
    for name in ("config.json", "thesis.tex"):
        file = tmp_path / name / name
        file.parent.mkdir()
        file.write_text("of another program")
        for save in (fitted.save, fitted.net_.module_.save_pretrained):
            with pytest.raises(ValueError, match=name):
                save(file.parent)
        assert [found.read_text() for found in file.parent.iterdir()] == ["of another program"]


def test_a_loaded_classifier_has_all_fitted_attributes(fitted, folder, nights):
    clf = PARSClassifier.load(folder)
    np.testing.assert_array_equal(clf.predict_proba(nights), fitted.predict_proba(nights))
    np.testing.assert_array_equal(clf.classes_, fitted.classes_)
    assert clf.get_params() == fitted.get_params()
    assert clf.history_.equals(fitted.history_)
    assert clf.encoder_card_ == fitted.encoder_card_
    assert (clf.sfreq_, clf.n_chans_, clf.n_times_) == (100.0, 3, 1000)
    assert [ch["ch_name"] for ch in clf.chs_info_] == ["C3", "C4", "F3"]
    assert torch.equal(clf.net_.criterion_.weight, fitted.net_.criterion_.weight)
    y = np.array(["W", "N1", "N2", "N3", "R"])[as_sklearn(nights)[1]]
    # The loaded classifier can be fitted again.
    assert same_weights(clf.fit(nights, y).net_.module_, fitted.net_.module_)


@pytest.mark.parametrize("labels", [[False, True], [0.0, 1.0]])
def test_labels_keep_their_type(nights, tmp_path, labels):
    X, _, groups = as_sklearn(nights)
    X, groups = X[::2], groups[::2]
    clf = classifier(pretext=None).fit(X, np.array(labels)[groups % 2])
    loaded = PARSClassifier.load(clf.save(tmp_path))
    assert loaded.pretext is None
    assert loaded.classes_.dtype == clf.classes_.dtype
    assert loaded.predict(X).tolist() == clf.predict(X).tolist()


def test_the_folder_is_a_model_and_an_encoder_too(fitted, folder):
    net = PARSNet.from_pretrained(folder)
    assert same_weights(net, fitted.net_.module_)
    encoder, card, report = load_encoder(folder)
    assert same_weights(encoder, fitted.encoder_)
    assert card.finetune_subjects == [1, 2, 3, 4]
    assert report.complete


def test_objects_are_not_saved_and_loading_warns(fitted_embedder, nights, tmp_path):
    task = PARS(1000, 100, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    clf = classifier(pretext=task, encoder=fitted_embedder).fit(nights)
    clf.save(tmp_path)
    with pytest.warns(UserWarning, match="encoder=PARSEmbedder"):
        loaded = PARSClassifier.load(tmp_path)
    assert loaded.encoder is None
    assert loaded.pretext == "pars"
    np.testing.assert_array_equal(loaded.predict_proba(nights), clf.predict_proba(nights))


@pytest.mark.filterwarnings("ignore:Fine-tuning", "ignore:.*reference as recorded, but average in ")
def test_an_encoder_of_the_package_is_saved_by_its_name(tmp_path, monkeypatch):
    """The same name is the same encoder everywhere, so another fit is the same one."""
    windows = datasets.simulated.sleep(n_subjects=2, hours=0.05, n_chans=1, sfreq=128)
    clf = PARSClassifier(
        encoder="small", freeze_encoder=True, finetune_epochs=1, random_state=0, verbose=0
    ).fit(windows)
    loaded = PARSClassifier.load(clf.save(tmp_path / "model", share=True), device="cpu")
    assert loaded.encoder == "small"
    again = clone(loaded).fit(windows)
    np.testing.assert_array_equal(again.predict_proba(windows), clf.predict_proba(windows))
    # A folder of this name is another encoder, and a file must not decide that it is read.
    monkeypatch.chdir(tmp_path)
    embedder().fit(windows).save("small")
    with pytest.warns(UserWarning, match="encoder='small'"):
        assert PARSClassifier.load("model").encoder is None


def test_a_file_does_not_decide_where_a_refit_reads_and_writes(fitted, tmp_path):
    clf = copy.copy(fitted).set_params(checkpoint_dir=tmp_path / "mine")
    folder = clf.save(tmp_path / "model")
    assert PARSClassifier.load(folder).checkpoint_dir is None

    def edit(description):
        kept = {"encoder": "hf://stranger/encoder", "checkpoint_dir": "/home/victim"}
        description["classifier"]["parameters"] = {"kept": kept, "pairs": {}, "left_out": {}}

    change_description(folder, edit)
    with pytest.warns(UserWarning, match=r"encoder=.*checkpoint_dir="):
        loaded = PARSClassifier.load(folder)
    assert (loaded.encoder, loaded.checkpoint_dir) == (None, None)


def test_a_file_does_not_decide_which_code_a_refit_runs(own_task, nights, tmp_path):
    named = f"{own_task}:Slope"
    folder = classifier(pretext=named).fit(nights).save(tmp_path / "model")
    forget()
    loaded = PARSClassifier.load(folder)
    assert loaded.pretext == "slope"
    assert len(loaded.predict(nights)) == len(nights)
    with pytest.raises(ValueError, match="Unknown pretext task 'slope'"):
        loaded.fit(nights)
    kept = {"kept": {"pretext": named}, "pairs": {}, "left_out": {}}
    change_description(folder, lambda d: d["classifier"].update(parameters=kept))
    with pytest.warns(UserWarning, match=r"not restored.*my_task\.py:Slope"):
        assert PARSClassifier.load(folder).pretext == "pars"
    assert "my_task" not in sys.modules


def test_partly_matching_weights_need_strict_false(fitted, folder):
    changed = {
        "encoder.norm.weight": None,
        "encoder.tokenizer.weight": torch.zeros(3, 3),
        "decoder.weight": torch.zeros(2),
    }
    change_tensors(folder, changed)
    n_tensors = len(fitted.net_.module_.state_dict())
    sizes = {PARSClassifier.load: n_tensors, load_encoder: len(fitted.encoder_.state_dict())}
    for load, n in sizes.items():
        with pytest.raises(ValueError, match=f"{n - 2} of {n}.* strict=False"):
            load(folder)
    report = PARSClassifier.load(folder, strict=False).load_report_
    assert report.missing == ("encoder.norm.weight",)
    assert report.reshaped == ("encoder.tokenizer.weight",)
    assert report.unexpected == ("decoder.weight",)
    assert len(report.loaded) == n_tensors - 2


GONE = object()


@pytest.mark.parametrize(
    ("part", "entry", "value", "message"),
    [
        ("classifier", "parameters", {"kept": {"n": 1}, "pairs": {}, "left_out": {}}, "'n'"),
        ("classifier", "windows", {"montage": "one"}, "sfreq"),
        ("classifier", "pretraining", {"speed": "fast"}, "speed"),
        ("classifier", "transitions", GONE, r"model\.safetensors .*'transitions'.* fit"),
        ("network", "n_outputs", "five", "does not describe a valid model"),
        ("network", "recenter", "subject", "'recenter'.* fit"),
    ],
)
def test_a_description_of_another_version(folder, part, entry, value, message):
    def edit(description):
        description[part][entry] = value
        if value is GONE:
            del description[part][entry]

    change_description(folder, edit)
    with pytest.raises(ValueError, match=message):
        PARSClassifier.load(folder)


def test_nan_weights_cannot_be_saved(fitted, tmp_path):
    clf = copy.deepcopy(fitted)
    nn.init.constant_(clf.net_.module_.final_layer.bias, float("nan"))
    with pytest.raises(ValueError, match=r"final_layer\.bias"):
        clf.save(tmp_path)


def test_the_amplitudes_of_the_training_windows_are_saved(fitted, folder, nights):
    """Those of the training subjects, not of the validation subjects."""
    found = fitted.amplitudes_
    trained_on = fitted.encoder_card_.subjects
    assert len(trained_on) == 3
    trained = [night for night in nights.datasets if night.description["subject"] in trained_on]
    amplitudes = [channel.std(dtype=float) for night in trained for x, *_ in night for channel in x]
    expected = np.percentile(amplitudes, [5, 95])
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-5)
    assert PARSClassifier.load(folder).amplitudes_ == found


def test_a_folder_without_encoder_weights_raises(folder):
    names = [n for n in load_file(folder / "model.safetensors") if n.startswith("encoder.")]
    change_tensors(folder, {**dict.fromkeys(names), "head.weight": torch.zeros(10**5)})
    with pytest.raises(ValueError, match="encoder"):
        load_encoder(folder, strict=False)
