"""Classifiers for comparisons, by name: pretext tasks, probes, networks, classical features."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from torch.utils.data import Dataset

from braindecode_pars._common import checks
from braindecode_pars._common.names import BASELINES, CENTERED, TASKS, extra_module
from braindecode_pars.baselines import linear_probe, window_features
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.baselines.foundation import FOUNDATION_MODELS
from braindecode_pars.baselines.linear_probe import LinearProbe
from braindecode_pars.baselines.network import NetworkClassifier
from braindecode_pars.baselines.smoothing import HMMSmoothing
from braindecode_pars.estimators import (
    EuclideanAlignment,
    PARSClassifier,
    PARSEmbedder,
    SubjectCentering,
    embedder,
)
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretext.base import find_task
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows import as_sklearn

__all__ = ["ALL_WEIGHTS", "CENTERED", "FROZEN", "METHODS", "SMOOTHED", "make_methods"]

#: Method names that :func:`make_methods` accepts.
METHODS = (*TASKS, *BASELINES)

#: Shown name, class of the features, their arguments, and those of the linear classifier.
_Linear = tuple[str, type[TransformerMixin], dict[str, Any], dict[str, Any]]
_COVARIANCE, _STRONG = window_features.SpatialCovariance, dict(C=linear_probe.DEFAULT_C)
#: Methods with a linear classifier. An embedder keeps the channels apart, as other features do.
_LINEAR: dict[str, _Linear] = {
    "probe": ("PARS, linear probe", PARSEmbedder, dict(pooling="channels", pretext="pars"), {}),
    "random-encoder": ("random encoder", PARSEmbedder, dict(pooling="channels", pretext=None), {}),
    "tangent-space": ("tangent space", _COVARIANCE, {}, _STRONG),
    "tangent-space-8-30": ("tangent space 8-30 Hz", _COVARIANCE, dict(band=(8, 30)), _STRONG),
    "band-power": ("log band power", window_features.LogBandPower, {}, {}),
    "classical-features": ("hand-crafted features", window_features.ChannelFeatures, {}, {}),
    "slow-voltages": (
        "low-frequency amplitude",
        window_features.LowFrequencyAmplitude,
        {},
        dict(classifier="lda"),
    ),
    "amplitude": ("log amplitude", window_features.LogAmplitude, {}, {}),
}

#: Suffix of the method name of an encoder that stays frozen, so that only the head is trained.
FROZEN = ", head trained"
#: Suffix of the method name of an encoder whose weights are all fine-tuned.
ALL_WEIGHTS = ", fine-tuned"
#: Suffix of the method name of predictions that are smoothed over time, with ``smoothing=True``.
SMOOTHED = ", smoothed over time (transductive)"

#: Names in tables and figures of methods that are not linear classifiers, by their keys.
_SHOWN = {"scratch": "from scratch", "few-labels": "feature ensemble"}


def shown_name(key: str) -> str:
    """Return the name in tables and figures of a method of :data:`METHODS`."""
    return _LINEAR[key][0] if key in _LINEAR else _SHOWN.get(key, key)


def make_methods(
    names: Iterable[str] = ("pars", "mae", "scratch", "band-power", "tangent-space"),
    *,
    encoder: str | Path | Mapping[str, str | Path] | None = None,
    subject_centering: bool = False,
    smoothing: bool = False,
    equal_sizes: bool = True,
    **settings: Any,
) -> dict[str, BaseEstimator]:
    """Return classifiers for ``evaluation.compare`` and the other protocols.

    Parameters
    ----------
    names : iterable of str
        Method names from :data:`METHODS`:

        - the name of a pretext task: :class:`~braindecode_pars.PARSClassifier`, which pretrains on
          the training windows in every fit and then fine-tunes. Also of a registered task of your
          own, and of one in a file, ``"my_task.py:Slope"``, whose code is run;
        - ``"scratch"``: the same model without pretraining;
        - ``"few-labels"``: :class:`~braindecode_pars.FewLabelsClassifier` with the encoder
          ``"small"``, or of each ``encoder``, if that is given;
        - ``"probe"``: :class:`~braindecode_pars.PARSEmbedder`, frozen after pretraining with PARS
          in every fit, with logistic regression; of each ``encoder``, if that is given;
        - ``"random-encoder"``: the same with an encoder that is not trained;
        - ``"eegnet"``, ``"shallow"``: EEGNet and ShallowFBCSPNet of braindecode with their
          published training, see Notes;
        - ``"cbramod:WEIGHTS"``, and so ``biot``, ``eegpt``, ``labram``, ``signaljepa`` and others
          of :data:`~braindecode_pars.models.FOUNDATION_MODELS`: published weights in
          :class:`~braindecode_pars.estimators.NetworkClassifier`, from a file, a folder or the Hub;
        - ``"band-power"``: :class:`~braindecode_pars.evaluation.LogBandPower` with logistic
          regression;
        - ``"tangent-space"``: :class:`~braindecode_pars.evaluation.SpatialCovariance`, the tangent
          space of pyriemann and logistic regression;
        - ``"tangent-space-8-30"``: the same after a filter from 8 to 30 Hz, the band of motor
          imagery, of each window;
        - ``"classical-features"``: :class:`~braindecode_pars.evaluation.ChannelFeatures` with
          logistic regression. (``"features"`` is the pretext task that predicts them);
        - ``"slow-voltages"``: :class:`~braindecode_pars.evaluation.LowFrequencyAmplitude`, frontal if the
          channels have names, with linear discriminant analysis;
        - ``"amplitude"``: :class:`~braindecode_pars.evaluation.LogAmplitude` with logistic
          regression.
    encoder : path | str | dict of str to path | None
        Pretrained encoder. It adds two methods: ``"pretrained, head trained"``, whose encoder stays
        frozen, and ``"pretrained, fine-tuned"``, which is trained in the same way as ``"scratch"``.
        A dict adds both methods for each encoder, with the names of the dict:
        ``{"PARS": "run1", "MAE": "run2"}``. Frozen encoders are accompanied by a randomly
        initialized encoder, ``"random encoder, head trained"``. With ``freeze_encoder=True``, only
        the methods with a frozen encoder are added, and with ``False`` only those that are
        fine-tuned. All other methods
        with an encoder then take its sizes, tokenizer and patch, so that a difference of their
        scores is not one of these. Beside ``"few-labels"`` without ``encoder``, they take the sizes
        of ``"small"``.
    subject_centering : bool
        Whether every method is given the windows of a subject to subtract the subject's mean: from
        the features of probes and classical methods (:class:`~braindecode_pars.SubjectCentering`),
        inside FewLabelsClassifier (``recenter="subject"``), and from the covariance of the signals
        of networks, PARSClassifier among them
        (:class:`~braindecode_pars.estimators.EuclideanAlignment`). The names then end with
        :data:`CENTERED`.
    smoothing : bool
        Whether every method is there once more, with predictions that are smoothed over time
        (:class:`~braindecode_pars.estimators.HMMSmoothing`), for windows in a row. Their names end
        with :data:`SMOOTHED`.
    equal_sizes : bool
        Whether the other methods take the sizes of the first encoder, where ``settings`` have no
        others. With False they have the defaults. The protocols refuse encoders of different sizes
        without their own ``equal_sizes=False``.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier`; beside ``"few-labels"``, also of
        :class:`~braindecode_pars.FewLabelsClassifier`. Those that another method also has
        (``finetune_epochs``, ``validation``, ``channels``, ...) apply to it too, instead of its
        published values. ``class_weight`` applies to all: it is "balanced" if it is not given, as
        in PARSClassifier. ``C`` is that of every logistic regression on standardized features
        (:class:`~braindecode_pars.estimators.LinearProbe` and FewLabelsClassifier); ``C=None``
        searches it by held-out subjects of each fit. If it is not given, it is 0.01 for tangent
        space and FewLabelsClassifier, and 1 for the others.

    Returns
    -------
    dict of str to estimator
        Unfitted classifiers. The keys are the names shown in tables and figures.

    Raises
    ------
    ValueError
        When a method or a setting is unknown, or when two methods have one name.
    FileNotFoundError
        When ``encoder`` is not an existing folder or model.

    Notes
    -----
    Both networks train for 500 epochs, and the state with the lowest loss on held-out training
    subjects is kept (Lawhern et al. 2018, section 2.2, who train both so). Lengths in samples are
    scaled to the sampling rate, as there.

    That takes minutes a fit; ``make_methods(["eegnet", "shallow"], finetune_epochs=15)`` takes
    seconds, see :doc:`/results/hands`.

    - EEGNet-8,2 (Lawhern et al. 2018): Adam with a learning rate of 0.001, no weight decay, batches
      of 16 (the authors' code), dropout 0.25 as across subjects, temporal kernels of half a second,
      pooling to about 32 Hz, norm constraints of 1 and 0.25.
    - ShallowFBCSPNet (Schirrmeister et al. 2017): kernels of 100 ms, pooling over 300 ms every
      60 ms. Adam with a learning rate of 0.000625 that falls to zero along a cosine, no weight
      decay and batches of 64 are the values of braindecode's tutorials.

    Both hold out a fifth of the training subjects for validation. The scale of the signals is that
    of :class:`~braindecode_pars.estimators.NetworkClassifier`.

    References
    ----------
    Lawhern et al. 2018, Journal of Neural Engineering 15, 056013. Schirrmeister et al. 2017, Human
    Brain Mapping 38.

    Examples
    --------
    >>> from braindecode_pars.baselines import make_methods
    >>> list(make_methods(["pars", "scratch", "band-power"], finetune_epochs=5))
    ['PARS', 'from scratch', 'log band power']
    >>> list(make_methods(["band-power"], subject_centering=True))
    ['log band power, subject-centered (transductive)']
    >>> methods = make_methods(["scratch"], encoder="small")
    >>> methods["from scratch"].embed_dim  # as large as the encoder
    128
    """
    for name in ("subject_centering", "smoothing", "equal_sizes"):
        checks.boolean().check(name, locals()[name])
    names = list(dict.fromkeys(names))
    parameters = PARSClassifier().get_params()
    further = FewLabelsClassifier().get_params() if "few-labels" in names else {}
    if not _LINEAR.keys().isdisjoint(names):
        further["C"] = LinearProbe().C
    tasks = [n for n in names if n in PRETEXT_TASKS or checks.names_file(n) or _network(n)]
    for what, requested_names, known in (
        ("Method", names, dict.fromkeys((*METHODS, *tasks))),
        ("Setting of these methods", settings, {**parameters, **further}),
    ):
        for name in requested_names:
            if name not in known:
                raise ValueError(f"{what} {name!r} is unknown; known are {', '.join(known)}.")
    # One rule for all methods of a table, also for those whose own default is another.
    settings = {"verbose": 0, "class_weight": parameters["class_weight"], **settings}
    if subject_centering and "few-labels" in names:
        settings["recenter"] = "subject"
    encoders = encoder if isinstance(encoder, Mapping) else {"pretrained": encoder}
    encoders = {} if encoder is None else dict(encoders)
    all_methods = _classifiers(names, encoders, subject_centering, settings, equal_sizes)
    named_methods = [*(_centered(all_methods, settings) if subject_centering else all_methods)]
    shown = [label for label, _ in named_methods]
    if twice := [label for label in shown if shown.count(label) > 1]:
        raise ValueError(f"Two methods are called {twice[0]!r}; rename the encoder.")
    methods = dict(named_methods)
    if smoothing:
        methods |= {shown + SMOOTHED: HMMSmoothing(method) for shown, method in named_methods}
    return methods


def _size_of(encoders: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a new encoder of the size of the first of these."""
    for source in encoders.values():
        encoder, card, _ = load_encoder(source)
        size = {name: encoder.config[name] for name in embedder.SIZES}
        if card.sfreq is not None:
            size["patch_seconds"] = encoder.patch_size / card.sfreq
        return size
    return {}


def _classifiers(
    names: list[str],
    encoders: dict[str, Any],
    centered: bool,
    settings: dict[str, Any],
    equal_sizes: bool,
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield the shown name and the classifier of each method, and then of each encoder."""
    default = {"feature ensemble": FewLabelsClassifier().encoder} if "few-labels" in names else {}
    sized = (_size_of(encoders or default) if equal_sizes else {}) | settings
    trained = _shared(PARSClassifier, sized)
    for name in names:
        if name == "few-labels":
            yield from _votes(encoders or default, settings)
        elif name == "probe" and encoders:
            for shown, encoder in encoders.items():
                frozen = dict(pooling="channels", encoder=encoder)
                yield _linear((f"{shown}, linear probe", PARSEmbedder, frozen, {}), sized)
        elif name in PRETEXT_TASKS or checks.names_file(name):
            yield find_task(name).__name__, PARSClassifier(pretext=name, **trained)
        elif name == "scratch":
            yield shown_name(name), PARSClassifier(pretext=None, **trained)
        elif network := _network(name, centered):
            shown, arguments = network
            yield shown, NetworkClassifier(**{**arguments, **_shared(NetworkClassifier, sized)})
        else:
            yield _linear(_LINEAR[name], sized)
    if encoders:
        yield from _fine_tuned(encoders, _shared(PARSClassifier, settings), trained)


def _centered(
    methods: Iterable[tuple[str, BaseEstimator]], settings: dict[str, Any]
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield probes of centered features, and networks after an alignment of their signals."""
    for shown, classifier in methods:
        if isinstance(classifier, LinearProbe):
            shown += CENTERED
            classifier.transformer = SubjectCentering(classifier.transformer)
        elif isinstance(classifier, (PARSClassifier, NetworkClassifier)):
            alignment = EuclideanAlignment(**_shared(EuclideanAlignment, settings))
            shown, classifier = shown + CENTERED, make_pipeline(alignment, classifier)
        yield shown, classifier


def _fine_tuned(
    encoders: dict[str, Any], settings: dict[str, Any], untrained: dict[str, Any]
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield each encoder frozen, beside an untrained one, and then trained as a new one is."""
    freeze = settings.get("freeze_encoder", checks.AUTO)
    if freeze:
        frozen = dict(freeze_encoder=True)
        yield f"random encoder{FROZEN}", PARSClassifier(None, **untrained | frozen)
        for shown, encoder in encoders.items():
            yield shown + FROZEN, PARSClassifier(encoder=encoder, **settings | frozen)
    if freeze is not True:
        alike = dict(head_epochs=0, encoder_lr_factor=1.0) | settings | dict(freeze_encoder=False)
        for shown, encoder in encoders.items():
            yield shown + ALL_WEIGHTS, PARSClassifier(encoder=encoder, **alike)


def _network(name: str, centered: bool = False) -> tuple[str, dict[str, Any]] | None:
    """Return the shown name and the arguments of a network, such as "cbramod:WEIGHTS"."""
    if name in _PUBLISHED:
        return _PUBLISHED[name]["network"], _PUBLISHED[name]
    by_name = {network.partition("_")[0].lower(): network for network in FOUNDATION_MODELS}
    model, _, weights = name.partition(":")
    if not weights or model not in by_name:
        return None
    if centered:
        raise ValueError(f"{name} expects volts, which subject_centering=True would whiten.")
    network = by_name[model]
    # With the name of the weights, so that a network can have several.
    return f"{network} {Path(weights).stem}", dict(network=network, weights=weights)


def _votes(
    encoders: dict[str, Any], settings: dict[str, Any]
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield the shown name and the ensemble of each encoder, named only if there are several."""
    shared = {"recenter": None, **_shared(FewLabelsClassifier, settings)}
    recentered = "" if shared["recenter"] is None else CENTERED
    for shown, encoder in encoders.items():
        prefix = f"{shown}, " if len(encoders) > 1 else ""
        name = f"{prefix}{shown_name('few-labels')}{recentered}"
        yield name, FewLabelsClassifier(encoder=encoder, **shared)


def _linear(method: _Linear, settings: dict[str, Any]) -> tuple[str, BaseEstimator]:
    """Return the shown name, and a linear classifier on features, with defaults of its own."""
    shown, transformer, arguments, of_classifier = method
    features = transformer(**arguments, **_shared(transformer, settings))
    if transformer is window_features.SpatialCovariance:
        tangentspace = extra_module("pyriemann.tangentspace")

        features = make_pipeline(features, tangentspace.TangentSpace())
    return shown, LinearProbe(features, **{**of_classifier, **_shared(LinearProbe, settings)})


def _shared(estimator: type[BaseEstimator], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that an estimator has."""
    known = inspect.signature(estimator).parameters
    return {key: value for key, value in settings.items() if key in known}


def _eegnet_at(sfreq: float) -> dict[str, Any]:
    """Return lengths for a sampling rate; at 128 Hz, 64 samples and a pooling of 4."""
    return dict(
        F1=8,
        D=2,
        kernel_length=max(1, round(sfreq / 2)),
        pool1_kernel_size=max(1, round(sfreq / 32)),
        drop_prob=0.25,
        final_layer_with_constraint=True,
    )


def _shallow_at(sfreq: float) -> dict[str, Any]:
    """Return lengths for a sampling rate; at 250 Hz, the published 25, 75 and 15 samples."""
    return dict(
        filter_time_length=max(1, round(0.1 * sfreq)),
        pool_time_length=max(1, round(0.3 * sfreq)),
        pool_time_stride=max(1, round(0.06 * sfreq)),
    )


_IN_COMMON = dict(finetune_epochs=500, gradient_clip=None, weight_decay=0.0, validation=0.2)
#: Training of the networks, see the notes of :func:`make_methods`.
_PUBLISHED: dict[str, dict[str, Any]] = {
    "eegnet": dict(
        network="EEGNet",
        network_params=_eegnet_at,
        finetune_batch_size=16,
        finetune_lr=1e-3,
        finetune_warmup=None,
        **_IN_COMMON,
    ),
    "shallow": dict(
        network="ShallowFBCSPNet",
        network_params=_shallow_at,
        finetune_batch_size=64,
        finetune_lr=0.0625 * 0.01,
        finetune_warmup=0.0,  # along a cosine
        **_IN_COMMON,
    ),
}


# What a fit of each method costs ------------------------------------------------------------------

#: Columns of a cost table and their types; missing values are allowed in all.
_COLUMNS = dict.fromkeys(embedder.TrainingCost._fields, "Int64")


def cost_table(estimators: Mapping[str, BaseEstimator], windows_ds: Dataset) -> pd.DataFrame:
    """Return what one fit of each method on these windows costs, without training.

    Methods with more parameters or steps are not compared on equal terms. The numbers belong beside
    their scores.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    windows_ds : BaseConcatDataset
        Labeled training windows with ``subject`` in the descriptions.

    Returns
    -------
    pandas.DataFrame
        One row for each method, with the columns ``method``, ``parameters`` (weights that are
        trained), ``pretraining_steps`` and ``finetuning_steps``. The earlier pretraining of a given
        encoder counts. Missing values are unknown, or do not apply: band power has none of these
        numbers. A classifier behind an encoder, such as the logistic regression of a probe, does
        not count.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As the ``fit`` of the methods, before they train.

    Notes
    -----
    The estimators of this package have a method ``training_cost(X, y, groups=...)``. One of your
    own is in the table if it has this method, which returns an object with these columns as
    attributes.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.baselines import make_methods
    >>> from braindecode_pars.evaluation import cost_table
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> epochs = dict(pretrain_epochs=3, finetune_epochs=30)
    >>> methods = make_methods(["pars", "scratch", "band-power"], **epochs)
    >>> costs = cost_table(methods, windows)
    >>> costs[["method", "pretraining_steps", "finetuning_steps"]]
               method  pretraining_steps  finetuning_steps
    0            PARS                  3                30
    1    from scratch                  0                30
    2  log band power               <NA>              <NA>
    """
    X, y, groups = as_sklearn(windows_ds)
    rows = []
    for method, estimator in estimators.items():
        part = _part_with("training_cost", estimator)
        cost = None if part is None else part.training_cost(X, y, groups=groups)
        rows.append({"method": method, **{name: getattr(cost, name, None) for name in _COLUMNS}})
    return pd.DataFrame(rows, columns=["method", *_COLUMNS]).astype(_COLUMNS)


def check_equal_sizes(
    estimators: Mapping[str, BaseEstimator], X: Any, equal_sizes: bool = True
) -> dict[str, int]:
    """Check that the encoders of all methods have the same number of parameters.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    X : windows
        Windows that they are to be trained on.
    equal_sizes : bool
        Whether different numbers are refused.

    Returns
    -------
    dict of str to int
        Number of each method with an encoder, where they differ; empty where they are equal.

    Raises
    ------
    TypeError
        When ``equal_sizes`` is not True or False.
    ValueError
        When they have not; the message has both numbers.
    """
    checks.boolean().check("equal_sizes", equal_sizes)
    parts = {name: _part_with("n_encoder_parameters", e) for name, e in estimators.items()}
    parts = {name: part for name, part in parts.items() if part is not None}
    if len(parts) < 2:
        return {}
    sizes = {name: part.n_encoder_parameters(X) for name, part in parts.items()}
    smallest, largest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[smallest] < sizes[largest] and equal_sizes:
        raise ValueError(
            f"The encoder of {largest} has {sizes[largest]:,} parameters, that of {smallest} only "
            f"{sizes[smallest]:,}; give both the same sizes, tokenizer and patch_seconds, as "
            "make_methods(encoder=...) does, or pass equal_sizes=False (--unequal-sizes)."
        )
    return sizes if sizes[smallest] < sizes[largest] else {}


def _part_with(method: str, estimator: BaseEstimator) -> Any:
    """Return the estimator, or the first one inside it, that has a method of this name."""
    parts = (estimator, *estimator.get_params().values())
    return next((part for part in parts if hasattr(part, method)), None)
