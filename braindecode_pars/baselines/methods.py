"""Create classifiers for comparisons by name: pretext tasks, linear probes, networks, baselines."""

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
    encoder_start,
)
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretext.base import find_task
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows import as_sklearn

__all__ = ["ALL_WEIGHTS", "CENTERED", "FROZEN", "METHODS", "SMOOTHED", "make_methods"]

#: Method names that :func:`make_methods` accepts.
METHODS = (*TASKS, *BASELINES)

#: Displayed name, class of the transformer, arguments of the transformer, and arguments of the
#: linear classifier.
_Linear = tuple[str, type[TransformerMixin], dict[str, Any], dict[str, Any]]
_COVARIANCE = window_features.SpatialCovariance
#: Regularization of the linear classifier on tangent space features.
_STRONG = dict(C=linear_probe.DEFAULT_C)
#: Methods with a linear classifier. The embedders use pooling="channels", because the other
#: features are also computed per channel.
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

#: Suffix of the names of methods that train only the head, with a frozen encoder.
FROZEN = ", head trained"
#: Suffix of the names of methods that fine-tune all weights of a pretrained encoder.
ALL_WEIGHTS = ", fine-tuned"
#: Suffix of the names of methods with temporal smoothing (``smoothing=True``).
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
    """Create unfitted classifiers for ``evaluation.compare`` and the other protocols.

    Parameters
    ----------
    names : iterable of str
        Method names from :data:`METHODS`:

        - the name of a pretext task: :class:`~braindecode_pars.PARSClassifier`, which pretrains on
          the training windows in every fit and then fine-tunes. You can also pass the name of a
          task that you have registered, or a class in a file, such as ``"my_task.py:Slope"``; the
          code of the file is then run;
        - ``"scratch"``: the same network trained from scratch, without pretraining;
        - ``"few-labels"``: :class:`~braindecode_pars.FewLabelsClassifier` with each ``encoder``.
          If ``encoder`` is None, with the bundled encoder ``"small"``;
        - ``"probe"``: linear probe of each ``encoder``. If ``encoder`` is None, linear probe of a
          :class:`~braindecode_pars.PARSEmbedder` that is pretrained with PARS in every fit;
        - ``"random-encoder"``: linear probe of a random encoder;
        - ``"eegnet"``, ``"shallow"``: EEGNet and ShallowFBCSPNet of braindecode, trained as
          published, see Notes;
        - ``"cbramod:WEIGHTS"``: :class:`~braindecode_pars.estimators.NetworkClassifier` with
          published weights of CBraMod, from a file, a folder or the Hub. The same form is accepted
          for ``biot``, ``eegpt``, ``labram``, ``signaljepa`` and the other models in
          :data:`~braindecode_pars.models.FOUNDATION_MODELS`;
        - ``"band-power"``: :class:`~braindecode_pars.evaluation.LogBandPower` with logistic
          regression;
        - ``"tangent-space"``: :class:`~braindecode_pars.evaluation.SpatialCovariance`, the tangent
          space of pyRiemann, and logistic regression;
        - ``"tangent-space-8-30"``: the same after band-pass filtering each window from 8 to 30 Hz,
          the band of motor imagery;
        - ``"classical-features"``: hand-crafted features
          (:class:`~braindecode_pars.evaluation.ChannelFeatures`) with logistic regression.
          (``"features"`` is the pretext task that predicts these features);
        - ``"slow-voltages"``: :class:`~braindecode_pars.evaluation.LowFrequencyAmplitude` with
          linear discriminant analysis. It uses frontal channels if the channels have names;
        - ``"amplitude"``: :class:`~braindecode_pars.evaluation.LogAmplitude` with logistic
          regression.
    encoder : path | str | dict of str to path | None
        Pretrained encoder. It adds two methods: ``"pretrained, head trained"``, which trains only
        the head, and ``"pretrained, fine-tuned"``, which fine-tunes all weights with the training
        settings of ``"scratch"``. A dict adds two methods for each encoder, and its keys are the
        names of the encoders: ``{"PARS": "run1", "MAE": "run2"}``. For comparison with the frozen
        encoders, ``"random encoder, head trained"`` is also added. With ``freeze_encoder=True``,
        only the frozen encoders are added; with ``freeze_encoder=False``, only the fine-tuned
        encoders. All other methods with an encoder use the same sizes, tokenizer and patch length,
        so that these settings cannot explain differences between scores. If ``encoder`` is None and
        ``names`` contains ``"few-labels"``, all methods with an encoder use the sizes of
        ``"small"``.
    subject_centering : bool
        Whether every method uses subject-wise centering (transductive). In linear probes, the
        features are centered (:class:`~braindecode_pars.SubjectCentering`). FewLabelsClassifier has
        ``recenter="subject"``. In networks and in PARSClassifier, the signals are aligned
        (:class:`~braindecode_pars.estimators.EuclideanAlignment`). The names of the methods then
        end with :data:`CENTERED`.
    smoothing : bool
        Whether to add each method a second time, with temporal smoothing of the predictions of
        consecutive windows (:class:`~braindecode_pars.estimators.HMMSmoothing`). The names of
        these methods end with :data:`SMOOTHED`.
    equal_sizes : bool
        Whether new encoders have the sizes of the first encoder in ``encoder``; sizes in
        ``settings`` take precedence. If False, new encoders have the default sizes. Also pass
        ``equal_sizes=False`` to the protocol, which otherwise raises an error for encoders of
        different sizes.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier` and, if ``names`` contains
        ``"few-labels"``, of :class:`~braindecode_pars.FewLabelsClassifier`. Arguments that other
        methods also have (``finetune_epochs``, ``validation``, ``channels``, ...) are passed to
        these methods too, and replace their published values. ``class_weight`` is passed to all
        methods; the default is "balanced", as in PARSClassifier. ``C`` is passed to every logistic
        regression (:class:`~braindecode_pars.estimators.LinearProbe` and FewLabelsClassifier);
        ``C=None`` selects ``C`` by cross-validation over subjects in each fit. The default of ``C``
        is 0.01 for tangent space and FewLabelsClassifier, and 1 for all other methods.

    Returns
    -------
    dict of str to estimator
        Unfitted classifiers. The keys are the names that tables and figures display.

    Raises
    ------
    ValueError
        If a method or a setting is unknown, or if two methods have the same name.
    FileNotFoundError
        If ``encoder`` is not an existing folder or model.

    Notes
    -----
    EEGNet and ShallowFBCSPNet train for 500 epochs. The state with the lowest loss on held-out
    training subjects is restored, as Lawhern et al. 2018 (section 2.2) did for both networks.
    Lengths in samples are scaled to the sampling rate, also as in that paper.

    A fit takes minutes. With ``make_methods(["eegnet", "shallow"], finetune_epochs=15)``, a fit
    takes seconds, see :doc:`/results/hands`.

    - EEGNet-8,2 (Lawhern et al. 2018): temporal kernels of half a second, pooling to about 32 Hz,
      norm constraints of 1 and 0.25. The dropout probability is 0.25, the value for cross-subject
      classification. It is trained with Adam, a learning rate of 0.001, no weight decay, and batch
      size 16 (the authors' code).
    - ShallowFBCSPNet (Schirrmeister et al. 2017): kernels of 100 ms, pooling over 300 ms every
      60 ms; and, as in braindecode's tutorials, Adam with a learning rate of 0.000625 and cosine
      annealing to zero, no weight decay, batch size 64.

    Both networks hold out 20 % of the training subjects for validation. Signals are scaled as
    described in :class:`~braindecode_pars.estimators.NetworkClassifier`.

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
    >>> methods["from scratch"].embed_dim  # embed_dim of "small"
    128
    """
    for name in ("subject_centering", "smoothing", "equal_sizes"):
        checks.boolean().check(name, locals()[name])
    names = list(dict.fromkeys(names))
    parameters = PARSClassifier().get_params()
    further = FewLabelsClassifier().get_params() if "few-labels" in names else {}
    if not _LINEAR.keys().isdisjoint(names):
        further["C"] = LinearProbe().C
    for name in names:
        known = name in METHODS or name in PRETEXT_TASKS or checks.names_file(name)
        if not (known or _network(name)):
            raise ValueError(f"Unknown method {name!r}. Use one of {', '.join(METHODS)}.")
    accepted = {**parameters, **further}
    if unknown := [name for name in settings if name not in accepted]:
        raise ValueError(
            f"Unknown setting of these methods {unknown[0]!r}. Use one of {', '.join(accepted)}."
        )
    # The same class weights for all methods of a table, even if the default of a method differs.
    settings = {"verbose": 0, "class_weight": parameters["class_weight"], **settings}
    encoders = encoder if isinstance(encoder, Mapping) else {"pretrained": encoder}
    encoders = {} if encoder is None else dict(encoders)
    if subject_centering:
        settings["recenter"] = "subject"
        if published := [name for name in names if ":" in name and _network(name)]:
            raise ValueError(
                f"{published[0]} requires signals in volts, but subject_centering=True whitens the "
                f"signals. Remove {published[0]}, or use subject_centering=False."
            )
    all_methods = _classifiers(names, encoders, settings, equal_sizes)
    named_methods = [*(_centered(all_methods, settings) if subject_centering else all_methods)]
    displayed_names = [name for name, _ in named_methods]
    if duplicates := [name for name in displayed_names if displayed_names.count(name) > 1]:
        raise ValueError(
            f"Method names must be unique, but two methods have the name {duplicates[0]!r}. Rename "
            "the key in encoder=."
        )
    methods = dict(named_methods)
    if smoothing:
        methods |= {name + SMOOTHED: HMMSmoothing(method) for name, method in named_methods}
    return methods


def _size_of(source: Any) -> dict[str, Any]:
    """Return the settings with which a new encoder has the size of an encoder."""
    encoder, card, _ = load_encoder(source)
    size = {name: encoder.config[name] for name in encoder_start.SIZES}
    if card.sfreq is not None:
        size["patch_seconds"] = encoder.patch_size / card.sfreq
    return size


def _classifiers(
    names: list[str], encoders: dict[str, Any], settings: dict[str, Any], equal_sizes: bool
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield the displayed name and the classifier of each method, and then of each encoder."""
    of_ensembles = encoders or {"feature ensemble": FewLabelsClassifier().encoder}
    sized = settings
    if equal_sizes and (encoders or "few-labels" in names):
        sized = _size_of(next(iter(of_ensembles.values()))) | settings
    trained = _shared(PARSClassifier, sized)
    for name in names:
        if name == "few-labels":
            yield from _ensembles(of_ensembles, settings)
        elif name == "probe" and encoders:
            for encoder_name, encoder in encoders.items():
                frozen = dict(pooling="channels", encoder=encoder)
                yield _linear((f"{encoder_name}, linear probe", PARSEmbedder, frozen, {}), sized)
        elif name in PRETEXT_TASKS or checks.names_file(name):
            yield find_task(name).__name__, PARSClassifier(pretext=name, **trained)
        elif name == "scratch":
            yield shown_name(name), PARSClassifier(pretext=None, **trained)
        elif network := _network(name):
            displayed_name, arguments = network
            arguments = {**arguments, **_shared(NetworkClassifier, sized)}
            yield displayed_name, NetworkClassifier(**arguments)
        else:
            yield _linear(_LINEAR[name], sized)
    if encoders:
        yield from _fine_tuned(encoders, _shared(PARSClassifier, settings), trained)


def _centered(
    methods: Iterable[tuple[str, BaseEstimator]], settings: dict[str, Any]
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield linear probes with centered features, and networks with Euclidean alignment."""
    for name, classifier in methods:
        if isinstance(classifier, LinearProbe):
            name += CENTERED
            classifier.transformer = SubjectCentering(classifier.transformer)
        elif isinstance(classifier, (PARSClassifier, NetworkClassifier)):
            alignment = EuclideanAlignment(**_shared(EuclideanAlignment, settings))
            name, classifier = name + CENTERED, make_pipeline(alignment, classifier)
        yield name, classifier


def _fine_tuned(
    encoders: dict[str, Any], settings: dict[str, Any], random_settings: dict[str, Any]
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield frozen encoders, including a random encoder, and then fine-tuned encoders."""
    freeze = settings.get("freeze_encoder", checks.AUTO)
    if freeze:
        frozen = dict(freeze_encoder=True)
        yield f"random encoder{FROZEN}", PARSClassifier(None, **random_settings | frozen)
        for name, encoder in encoders.items():
            yield name + FROZEN, PARSClassifier(encoder=encoder, **settings | frozen)
    if freeze is not True:
        # The settings of training from scratch
        params = dict(head_epochs=0, encoder_lr_factor=1.0) | settings | dict(freeze_encoder=False)
        for name, encoder in encoders.items():
            yield name + ALL_WEIGHTS, PARSClassifier(encoder=encoder, **params)


def _network(name: str) -> tuple[str, dict[str, Any]] | None:
    """Return the displayed name and the arguments of a network, such as "cbramod:WEIGHTS"."""
    if name in _PUBLISHED:
        return _PUBLISHED[name]["network"], _PUBLISHED[name]
    by_name = {network.partition("_")[0].lower(): network for network in FOUNDATION_MODELS}
    model, _, weights = name.partition(":")
    if not weights or model not in by_name:
        return None
    network = by_name[model]
    # The name contains the file of the weights, so that a network can be listed several times.
    return f"{network} {Path(weights).stem}", dict(network=network, weights=weights)


def _ensembles(
    encoders: dict[str, Any], settings: dict[str, Any]
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield the displayed name and the FewLabelsClassifier of each encoder.

    The name contains the name of the encoder only if there are several encoders.
    """
    shared = {"recenter": None, **_shared(FewLabelsClassifier, settings)}
    suffix = "" if shared["recenter"] is None else CENTERED
    for name, encoder in encoders.items():
        prefix = f"{name}, " if len(encoders) > 1 else ""
        shown = f"{prefix}{shown_name('few-labels')}{suffix}"
        yield shown, FewLabelsClassifier(encoder=encoder, **shared)


def _linear(method: _Linear, settings: dict[str, Any]) -> tuple[str, BaseEstimator]:
    """Return the displayed name and the linear probe of a method, with its default arguments."""
    name, transformer, arguments, classifier_arguments = method
    features = transformer(**arguments, **_shared(transformer, settings))
    if transformer is window_features.SpatialCovariance:
        tangent_space = extra_module("pyriemann.tangentspace").TangentSpace()
        features = make_pipeline(features, tangent_space)
    probe = LinearProbe(features, **{**classifier_arguments, **_shared(LinearProbe, settings)})
    return name, probe


def _shared(estimator: type[BaseEstimator], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that are parameters of an estimator."""
    accepted = inspect.signature(estimator).parameters
    return {key: value for key, value in settings.items() if key in accepted}


def _eegnet_at(sfreq: float) -> dict[str, Any]:
    """Return arguments of EEGNet for a sampling rate; at 128 Hz, kernels of 64 and pooling of 4."""
    return dict(
        F1=8,
        D=2,
        kernel_length=max(1, round(sfreq / 2)),
        pool1_kernel_size=max(1, round(sfreq / 32)),
        drop_prob=0.25,
        final_layer_with_constraint=True,
    )


def _shallow_at(sfreq: float) -> dict[str, Any]:
    """Return arguments of ShallowFBCSPNet; at 250 Hz, the published 25, 75 and 15 samples."""
    return dict(
        filter_time_length=max(1, round(0.1 * sfreq)),
        pool_time_length=max(1, round(0.3 * sfreq)),
        pool_time_stride=max(1, round(0.06 * sfreq)),
    )


_IN_COMMON = dict(finetune_epochs=500, gradient_clip=None, weight_decay=0.0, validation=0.2)
#: Published arguments of the networks, see the notes of :func:`make_methods`.
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
        finetune_warmup=0.0,  # cosine annealing without warm-up
        **_IN_COMMON,
    ),
}


# Training cost of each method ---------------------------------------------------------------------

#: Columns of a cost table and their dtypes, which allow missing values.
_COLUMNS = dict.fromkeys(embedder.TrainingCost._fields, "Int64")


def cost_table(estimators: Mapping[str, BaseEstimator], windows_ds: Dataset) -> pd.DataFrame:
    """Tabulate the training cost of one fit of each method, without training.

    Report the cost next to the scores: a method with more parameters or more training steps than
    another method is not directly comparable.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    windows_ds : BaseConcatDataset
        Labeled training windows with ``subject`` in the descriptions.

    Returns
    -------
    pandas.DataFrame
        One row for each method, with the columns ``method``, ``parameters`` (number of trained
        weights), ``pretraining_steps`` and ``finetuning_steps``. The pretraining of an encoder
        that was passed as ``encoder`` is included. A value is missing if it is unknown or does not
        apply, as for band power. The parameters of a classifier on frozen features, such as the
        logistic regression of a linear probe, are not included.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As in ``fit`` of the methods, before training.

    Notes
    -----
    The estimators of this package have a method ``training_cost(X, y, groups=...)``. To include
    your own estimator, define a method ``training_cost`` that returns an object with the columns of
    the table as attributes.

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
    """Check that the encoders of all methods have equal numbers of parameters.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    X : windows
        Training windows.
    equal_sizes : bool
        Whether to raise an error if the numbers differ.

    Returns
    -------
    dict of str to int
        If the numbers differ, the number of encoder parameters by method name, for methods that
        have an encoder. Empty if they are equal.

    Raises
    ------
    TypeError
        If ``equal_sizes`` is not True or False.
    ValueError
        If the numbers differ and ``equal_sizes`` is True. The message contains the smallest and
        the largest number.
    """
    checks.boolean().check("equal_sizes", equal_sizes)
    parts = {name: _part_with("n_encoder_parameters", e) for name, e in estimators.items()}
    sizes = {name: part.n_encoder_parameters(X) for name, part in parts.items() if part is not None}
    if len(set(sizes.values())) < 2:
        return {}
    if equal_sizes:
        smallest, largest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        raise ValueError(
            f"The encoders of {smallest} and {largest} must have equal numbers of parameters, got "
            f"{sizes[smallest]:,} and {sizes[largest]:,}. Use the same sizes, tokenizer and "
            "patch_seconds for both, as make_methods(encoder=...) does, or pass equal_sizes=False "
            "(--unequal-sizes)."
        )
    return sizes


def _part_with(method: str, estimator: BaseEstimator) -> Any:
    """Return the estimator or its first nested estimator that has a method of this name."""
    parts = (estimator, *estimator.get_params().values())
    return next((part for part in parts if hasattr(part, method)), None)
