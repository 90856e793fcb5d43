"""The classifiers of make_methods: names, classes and training budget."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from braindecode_pars import FewLabelsClassifier, PARSClassifier, PatchEncoder, SubjectCentering
from braindecode_pars._common.names import TASKS
from braindecode_pars.baselines import ALL_WEIGHTS, FROZEN, METHODS, make_methods
from braindecode_pars.estimators import EuclideanAlignment, LinearProbe, NetworkClassifier
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogAmplitude,
    LogBandPower,
    LowFrequencyAmplitude,
)
from braindecode_pars.pretrained import EncoderCard, save_encoder


def test_every_method_by_name():
    """Scores are stored under the shown names, such as the class name of a pretext task."""
    methods = make_methods(METHODS)
    baselines = {
        "scratch": "from scratch",
        "few-labels": "feature ensemble",
        "eegnet": "EEGNet",
        "band-power": "log band power",
        "tangent-space": "tangent space",
        "tangent-space-8-30": "tangent space 8-30 Hz",
        "classical-features": "hand-crafted features",
        "slow-voltages": "low-frequency amplitude",
        "amplitude": "log amplitude",
    }
    assert [*methods][: len(TASKS)] == [task.attribute for task in TASKS.values()]
    assert baselines.items() <= dict(zip(METHODS, methods, strict=True)).items()
    for name, transformer in (
        ("log band power", LogBandPower),
        ("hand-crafted features", ChannelFeatures),
        ("low-frequency amplitude", LowFrequencyAmplitude),
        ("log amplitude", LogAmplitude),
    ):
        assert type(methods[name].transformer) is transformer
    bands = [methods[f"tangent space{band}"].transformer[0].band for band in ("", " 8-30 Hz")]
    assert bands == [None, (8, 30)]
    assert methods["low-frequency amplitude"].classifier == "lda"
    assert methods["MAE"].pretext == "mae"
    assert methods["from scratch"].pretext is None
    assert methods["ShallowFBCSPNet"].network == "ShallowFBCSPNet"


@pytest.mark.parametrize(
    ("names", "arguments", "error", "message"),
    [
        (["pars", "svm"], {}, ValueError, "svm"),
        (["scratch"], dict(C=0.1), ValueError, "setting 'C'"),
        (["scratch"], dict(subject_centering="no"), TypeError, "subject_centering"),
        ([], dict(encoder={"random encoder": "small"}), ValueError, "'random encoder, head tr"),
    ],
)
def test_wrong_names_and_settings_are_refused(names, arguments, error, message):
    with pytest.raises(error, match=message):
        make_methods(names, **arguments)


def test_all_methods_have_the_same_training_budget():
    names = ["pars", "scratch", "eegnet", "shallow"]
    methods = make_methods(names, finetune_epochs=7, finetune_lr=0.1)
    assert {clf.finetune_epochs for clf in methods.values()} == {7}
    assert {clf.finetune_lr for clf in methods.values()} == {0.1}
    for clf in make_methods(METHODS, subject_centering=True, channels=["C3"]).values():
        given = [v for k, v in clf.get_params().items() if k.split("__")[-1] == "channels"]
        assert given
        assert all(channels == ["C3"] for channels in given)
    pars, network = PARSClassifier(), NetworkClassifier()
    for name in set(pars.get_params()) & set(network.get_params()):
        assert getattr(pars, name) == getattr(network, name), name


@pytest.mark.parametrize("class_weight", ["default", None, {0: 2.0, 1: 1.0}])
def test_all_methods_have_the_same_class_weights(class_weight):
    given = {} if class_weight == "default" else {"class_weight": class_weight}
    expected = PARSClassifier(**given).class_weight
    for centered in (False, True):
        methods = make_methods(METHODS, encoder="small", subject_centering=centered, **given)
        for name, clf in methods.items():
            params = clf.get_params().items()
            found = [value for key, value in params if key.split("__")[-1] == "class_weight"]
            assert found == [expected], name


def test_networks_have_their_published_training():
    methods = make_methods(["eegnet", "shallow"])
    published = ("finetune_epochs", "finetune_batch_size", "finetune_lr", "weight_decay")
    for name, values in (("EEGNet", [500, 16, 1e-3, 0]), ("ShallowFBCSPNet", [500, 64, 625e-6, 0])):
        assert [getattr(methods[name], setting) for setting in published] == pytest.approx(values)
        assert (methods[name].gradient_clip, methods[name].validation) == (None, 0.2)
    assert [clf.finetune_warmup for clf in methods.values()] == [None, 0.0]
    # Lengths as published at 128 and 250 Hz, and the same times at other rates.
    eegnet, shallow = (clf.network_params for clf in methods.values())
    assert (eegnet(128)["kernel_length"], eegnet(128)["pool1_kernel_size"]) == (64, 4)
    assert (eegnet(160)["kernel_length"], eegnet(160)["pool1_kernel_size"]) == (80, 5)
    assert list(shallow(250).values()) == [25, 75, 15]
    assert list(shallow(100).values()) == [10, 30, 6]


def test_the_published_networks_are_built_and_trained(nights):
    X, y = np.stack([nights[i][0][:, :300] for i in range(12)]), np.arange(12) % 2
    settings = dict(finetune_epochs=2, sfreq=100, validation=0)
    eegnet, shallow = make_methods(["eegnet", "shallow"], **settings).values()
    network = eegnet.fit(X, y).net_.module_.network
    assert network.conv_temporal.kernel_size == (1, 50)
    norms = network.final_layer.linearconstraint.weight.norm(dim=1)
    assert norms.max() <= 0.25 + 1e-6
    rates = shallow.fit(X, y).net_.optimizer_.param_groups[0]
    assert rates["lr"] == pytest.approx(0.5 * rates["initial_lr"])  # half of the cosine
    copied = pickle.loads(pickle.dumps(eegnet))
    np.testing.assert_array_equal(copied.predict_proba(X), eegnet.predict_proba(X))


def test_every_method_is_centered_and_says_so():
    plain = make_methods(METHODS, encoder="small")
    methods = make_methods(METHODS, encoder="small", subject_centering=True)
    assert list(methods) == [f"{name}, subject-centered (transductive)" for name in plain]
    for clf, centered in zip(plain.values(), methods.values(), strict=True):
        if isinstance(clf, FewLabelsClassifier):
            assert (clf.recenter, centered.recenter) == (None, "subject")
        elif isinstance(clf, (PARSClassifier, NetworkClassifier)):
            assert isinstance(centered[0], EuclideanAlignment)
            assert repr(centered[1]) == repr(clf)
        else:
            assert isinstance(centered.transformer, SubjectCentering)
            inner, plain = centered.transformer.transformer, clf.transformer
            assert repr(getattr(inner, "steps", inner)) == repr(getattr(plain, "steps", plain))
            assert (centered.classifier, centered.C) == (clf.classifier, clf.C)


def test_probes_keep_the_channels_apart(tiny):
    """As band power does; their mean could not tell left from right."""
    methods = make_methods(["probe", "random-encoder"], **tiny)
    methods |= make_methods(["probe"], encoder="small")
    poolings = [clf.transformer.pooling for clf in methods.values() if hasattr(clf, "transformer")]
    assert poolings == ["channels"] * 3


@pytest.mark.parametrize("C", ["default", 0.1, None])
def test_all_linear_classifiers_have_the_same_c(C):
    methods = make_methods(METHODS, encoder="small", **({} if C == "default" else {"C": C}))
    found = {name: clf.C for name, clf in methods.items() if hasattr(clf, "C")}
    linear = (LinearProbe, FewLabelsClassifier)
    assert list(found) == [name for name, clf in methods.items() if isinstance(clf, linear)]
    own = ("feature ensemble", "tangent space", "tangent space 8-30 Hz")
    for name, value in found.items():
        expected = (0.01 if name in own else 1.0) if C == "default" else C
        assert value == expected, name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    encoder = PatchEncoder(50, 16, num_layers=1, num_heads=2, mlp_dim=16, tokenizer="linear")
    card = EncoderCard(sfreq=100.0, subjects=[])
    return str(save_encoder(encoder, card, tmp_path_factory.mktemp("encoder") / "run"))


def test_an_encoder_adds_a_method():
    methods = make_methods(["scratch", "probe"], encoder="small")
    rows = ["random encoder, head trained", "pretrained, head trained", "pretrained, fine-tuned"]
    assert list(methods) == ["from scratch", "pretrained, linear probe", *rows]
    untrained, frozen, trained = (methods[name] for name in rows)
    assert (untrained.encoder, frozen.encoder, trained.encoder) == (None, "small", "small")
    assert (untrained.pretext, untrained.embed_dim) == (None, 128)
    assert methods["pretrained, linear probe"].transformer.encoder == "small"
    methods = make_methods(["scratch"], encoder="small", head="attention")
    assert [clf.head for clf in methods.values()] == ["attention"] * 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # one epoch
def test_a_frozen_encoder_has_an_untrained_twin_and_a_trained_one_is_trained_as_scratch(
    nights, folder
):
    methods = make_methods(["scratch"], encoder=folder, finetune_epochs=1, random_state=0)
    for name, clf in methods.items():
        how = clf.fit(nights).fine_tuning_
        assert how["freeze_encoder"] == name.endswith(FROZEN), name
        if not how["freeze_encoder"]:
            assert how == methods["from scratch"].fine_tuning_
        first = clf.encoder_.state_dict()["norm.weight"]
        assert (first == 1).all() == name.endswith(FROZEN), name
    for freeze, kind in ((True, FROZEN), (False, ALL_WEIGHTS)):
        only = make_methods([], encoder={"MAE": folder}, freeze_encoder=freeze)
        assert {*only} == {f"MAE{kind}", *([f"random encoder{FROZEN}"] if freeze else [])}


SIZES = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")


def test_all_encoders_have_the_size_of_the_given_one(tmp_path):
    """A small scratch beside a large encoder would look like an effect of pretraining."""
    encoder = PatchEncoder(25, 24, num_layers=3, num_heads=2, mlp_dim=40, tokenizer="linear")
    folder = str(save_encoder(encoder, EncoderCard(sfreq=50.0), tmp_path / "run"))
    methods = make_methods(METHODS, encoder=folder)
    del methods["pretrained, head trained"], methods["pretrained, fine-tuned"]  # the encoder itself
    for clf in methods.values():
        params = clf.get_params()
        found = {k.split("__")[-1]: v for k, v in params.items() if k.split("__")[-1] in SIZES}
        assert found == {k: encoder.config[k] for k in SIZES} or not found
        patches = [v for k, v in params.items() if k.split("__")[-1] == "patch_seconds"]
        assert set(patches) <= {0.5}
    assert make_methods(["scratch"], encoder=folder, embed_dim=24)["from scratch"].embed_dim == 24


def test_few_labels_votes_with_each_encoder(folder):
    """Without one it is that of the package, and other methods have its size."""
    methods = make_methods(["few-labels", "scratch"], C=0.1, channels=["C3"])
    vote, scratch = methods.values()
    assert [*methods] == ["feature ensemble", "from scratch"]
    assert (vote.encoder, vote.C, vote.channels, vote.recenter) == ("small", 0.1, ["C3"], None)
    assert scratch.embed_dim == 128
    one = make_methods(["few-labels", "scratch"], encoder=folder)
    assert [*one][:2] == ["feature ensemble", "from scratch"]
    assert (one["feature ensemble"].encoder, one["from scratch"].embed_dim) == (folder, 16)
    two = make_methods(["few-labels"], encoder={"A": folder, "B": folder})
    assert [*two][:2] == ["A, feature ensemble", "B, feature ensemble"]
