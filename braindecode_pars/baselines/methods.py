"""Create the classifiers of a comparison by name: pretext tasks, networks, linear probes."""

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

#: Displayed name, class of the transformer that computes the features, arguments of the
#: transformer, and arguments of the linear classifier.
_Linear = tuple[str, type[TransformerMixin], dict[str, Any], dict[str, Any]]
_COVARIANCE = window_features.SpatialCovariance
#: Strong regularization, for the linear classifier on tangent space features.
_STRONG = dict(C=linear_probe.DEFAULT_C)
#: Methods with a linear classifier. The embedders use pooling="channels", because the hand-crafted
#: features are also computed for each channel.
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

#: Suffix of the names of methods that train only the head, on a frozen encoder.
FROZEN = ", head trained"
#: Suffix of the names of methods that fine-tune all weights of a pretrained encoder.
ALL_WEIGHTS = ", fine-tuned"
#: Suffix of the names of methods with temporal smoothing (``make_methods(smoothing=True)``).
SMOOTHED = ", smoothed over time (transductive)"

#: Displayed names of methods that are not linear classifiers, by the name in METHODS.
_SHOWN = {"scratch": "from scratch", "few-labels": "feature ensemble"}


def shown_name(key: str) -> str:
    """Return the name that tables and figures display for a method in :data:`METHODS`."""
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
    """Create unfitted classifiers by name, to compare them with an evaluation protocol.

    Pass the result to :func:`~braindecode_pars.evaluation.compare`,
    :func:`~braindecode_pars.evaluation.label_efficiency` or another protocol, which trains and
    scores the classifiers on the same subjects.

    Parameters
    ----------
    names : iterable of str
        Method names from :data:`METHODS`:

        - the name of a pretext task, such as ``"pars"``: :class:`~braindecode_pars.PARSClassifier`
          with this task. Every fit pretrains on the training windows, and then fine-tunes. You can
          also pass the name of a task that you have registered, or a class in a Python file, such
          as ``"my_task.py:Slope"`` (the class ``Slope`` in ``my_task.py``); the code of this file
          is then run;
        - ``"scratch"``: the same network as for a pretext task, trained from scratch (without
          pretraining);
        - ``"few-labels"``: one :class:`~braindecode_pars.FewLabelsClassifier` for each encoder that
          is passed as ``encoder`` or, if ``encoder`` is None, with the bundled encoder ``"small"``;
        - ``"probe"``: linear probe (a linear classifier on the features of a frozen encoder) of
          each encoder that is passed as ``encoder``. If ``encoder`` is None, every fit pretrains a
          :class:`~braindecode_pars.PARSEmbedder` with PARS for the linear probe;
        - ``"random-encoder"``: linear probe of a randomly initialized encoder;
        - ``"eegnet"``, ``"shallow"``: EEGNet and ShallowFBCSPNet of braindecode, trained with the
          published settings (see Notes);
        - ``"cbramod:WEIGHTS"``: :class:`~braindecode_pars.estimators.NetworkClassifier` with
          published weights of CBraMod; WEIGHTS is a file, a folder or a model id of the Hugging
          Face Hub. The other models in :data:`~braindecode_pars.models.FOUNDATION_MODELS` are named
          in the same form: ``biot``, ``eegpt``, ``labram`` and ``signaljepa``;
        - ``"band-power"``: :class:`~braindecode_pars.evaluation.LogBandPower` with logistic
          regression;
        - ``"tangent-space"``: :class:`~braindecode_pars.evaluation.SpatialCovariance`, the tangent
          space of pyRiemann, and logistic regression;
        - ``"tangent-space-8-30"``: as ``"tangent-space"``, after band-pass filtering each window
          from 8 to 30 Hz, the frequency band of motor imagery;
        - ``"classical-features"``: hand-crafted features
          (:class:`~braindecode_pars.evaluation.ChannelFeatures`) with logistic regression. In
          contrast, ``"features"`` is the pretext task of predicting these features;
        - ``"slow-voltages"``: :class:`~braindecode_pars.evaluation.LowFrequencyAmplitude` with
          linear discriminant analysis, on the frontal channels (on all channels if the channels
          have no names);
        - ``"amplitude"``: :class:`~braindecode_pars.evaluation.LogAmplitude` with logistic
          regression.
    encoder : path | str | dict of str to path | None
        Pretrained encoder. If an encoder is passed, two methods that use it are added to the
        methods in ``names``: ``"pretrained, head trained"`` trains only the head, and
        ``"pretrained, fine-tuned"`` trains all weights, with the training settings of
        ``"scratch"``. As a baseline for the frozen encoder, ``"random encoder, head trained"`` is
        also added. If a dict is passed, such as ``{"PARS": "run1", "MAE": "run2"}``, both methods
        are added for each encoder, and the keys replace ``"pretrained"`` in the names. With the
        setting ``freeze_encoder=True``, only the methods with frozen encoders are added; with
        ``freeze_encoder=False``, only the fine-tuned methods.
    subject_centering : bool
        Whether every method uses subject-wise centering, which is transductive: predictions also
        use the other windows of the test subject, without labels. In linear probes, the features
        are centered (:class:`~braindecode_pars.SubjectCentering`). In FewLabelsClassifier,
        ``recenter="subject"`` is set. In networks and in PARSClassifier, the signals are aligned
        (:class:`~braindecode_pars.estimators.EuclideanAlignment`). If True, the names of the
        methods end with :data:`CENTERED`. If False, no method uses centering, unless ``settings``
        contains ``recenter`` for FewLabelsClassifier.
    smoothing : bool
        Whether to add a second version of each method, whose predictions are smoothed over
        consecutive windows (:class:`~braindecode_pars.estimators.HMMSmoothing`). The names of the
        smoothed versions end with :data:`SMOOTHED`.
    equal_sizes : bool
        Whether encoders that the methods create (pretrained in each fit, trained from scratch or
        randomly initialized) have the sizes (such as ``embed_dim``), the tokenizer and the patch
        length of the first encoder in ``encoder``, so that differences between scores cannot be
        explained by these settings. If ``encoder`` is None and ``names`` contains ``"few-labels"``,
        created encoders have the sizes of ``"small"``. Sizes in ``settings`` take precedence. If
        False, created encoders have the default sizes. In this case, also pass
        ``equal_sizes=False`` to the evaluation protocol, which otherwise raises an error for
        encoders of different sizes.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier` and, if ``names`` contains
        ``"few-labels"``, of :class:`~braindecode_pars.FewLabelsClassifier`. An argument such as
        ``finetune_epochs``, ``validation`` or ``channels`` is passed to every method that has this
        argument, and replaces the published setting of EEGNet or ShallowFBCSPNet. ``class_weight``
        is passed to all methods; the default is "balanced", as in PARSClassifier. ``C`` is passed
        to every logistic regression (:class:`~braindecode_pars.estimators.LinearProbe` and
        FewLabelsClassifier); if None, ``C`` is selected by cross-validation over subjects in each
        fit. The default of ``C`` is 0.01 for tangent space and FewLabelsClassifier, and 1 for all
        other methods.

    Returns
    -------
    dict of str to estimator
        Unfitted classifiers by method name. Tables and figures display these names.

    Raises
    ------
    ValueError
        If a method or a setting is unknown, if two methods have the same name, or if
        ``subject_centering=True`` is combined with published weights.
    FileNotFoundError
        If ``encoder`` is not an existing folder or model.

    Notes
    -----
    EEGNet and ShallowFBCSPNet are trained for 500 epochs. For both networks, the weights of the
    epoch with the lowest validation loss are then restored, as in Lawhern et al. 2018 (section
    2.2). Lengths in samples, such as kernel sizes, are scaled to the sampling rate, also as in this
    paper.

    With 500 epochs, a fit takes minutes; with ``make_methods(["eegnet", "shallow"],
    finetune_epochs=15)``, it takes seconds (see :doc:`/results/hands` for the scores).

    - EEGNet-8,2 (Lawhern et al. 2018): temporal kernels of half a second, pooling to about 32 Hz,
      norm constraints of 1 and 0.25. The dropout probability is 0.25, the published value for
      cross-subject classification. As in the authors' code, EEGNet is trained with Adam, a learning
      rate of 0.001, no weight decay, and batch size 16.
    - ShallowFBCSPNet (Schirrmeister et al. 2017): temporal kernels of 100 ms, and pooling over 300
      ms every 60 ms. As in braindecode's tutorials, it is trained with Adam, a learning rate of
      0.000625 with cosine annealing to zero, no weight decay, and batch size 64.

    For both networks, 20 % of the training subjects are held out for validation. Signals are scaled
    as described in :class:`~braindecode_pars.estimators.NetworkClassifier`.

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
            f"Unknown setting {unknown[0]!r}: none of the methods has this parameter. Use one of "
            f"{', '.join(accepted)}."
        )
    # Use the same class weights for all methods of a comparison, even if their defaults differ.
    settings = {"verbose": 0, "class_weight": parameters["class_weight"], **settings}
    encoders = encoder if isinstance(encoder, Mapping) else {"pretrained": encoder}
    encoders = {} if encoder is None else dict(encoders)
    if subject_centering:
        settings["recenter"] = "subject"
        if published := [name for name in names if ":" in name and _network(name)]:
            raise ValueError(
                f"{published[0]} requires signals in volts, but subject_centering=True whitens the "
                f"signals, so that they have no unit. Remove {published[0]}, or use "
                "subject_centering=False."
            )
    all_methods = _classifiers(names, encoders, settings, equal_sizes)
    named_methods = [*(_centered(all_methods, settings) if subject_centering else all_methods)]
    displayed_names = [name for name, _ in named_methods]
    if duplicates := [name for name in displayed_names if displayed_names.count(name) > 1]:
        raise ValueError(
            f"Method names must be unique, but two methods have the name {duplicates[0]!r}. "
            "Names contain the keys of the dict passed as encoder, class names of pretext tasks, "
            "and file names of weights. Rename the key, class or file that leads to this name."
        )
    methods = dict(named_methods)
    if smoothing:
        methods |= {name + SMOOTHED: HMMSmoothing(method) for name, method in named_methods}
    return methods


def _size_of(source: Any) -> dict[str, Any]:
    """Return the settings that give a new encoder the sizes of a pretrained encoder."""
    encoder, card, _ = load_encoder(source)
    size = {name: encoder.config[name] for name in encoder_start.SIZES}
    if card.sfreq is not None:
        size["patch_seconds"] = encoder.patch_size / card.sfreq
    return size


def _classifiers(
    names: list[str], encoders: dict[str, Any], settings: dict[str, Any], equal_sizes: bool
) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield displayed names and classifiers: of each method, then for each encoder."""
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
    """Yield the methods with centered features (linear probes) or aligned signals (networks)."""
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
    """Yield methods with frozen encoders, including a random encoder, then fine-tuned encoders."""
    freeze = settings.get("freeze_encoder", checks.AUTO)
    if freeze:
        frozen = dict(freeze_encoder=True)
        yield f"random encoder{FROZEN}", PARSClassifier(None, **random_settings | frozen)
        for name, encoder in encoders.items():
            yield name + FROZEN, PARSClassifier(encoder=encoder, **settings | frozen)
    if freeze is not True:
        # Use the settings of training from scratch
        params = dict(head_epochs=0, encoder_lr_factor=1.0) | settings | dict(freeze_encoder=False)
        for name, encoder in encoders.items():
            yield name + ALL_WEIGHTS, PARSClassifier(encoder=encoder, **params)


def _network(name: str) -> tuple[str, dict[str, Any]] | None:
    """Return the displayed name and the arguments of a network, given as "cbramod:WEIGHTS"."""
    if name in _PUBLISHED:
        return _PUBLISHED[name]["network"], _PUBLISHED[name]
    by_name = {network.partition("_")[0].lower(): network for network in FOUNDATION_MODELS}
    model, _, weights = name.partition(":")
    if not weights or model not in by_name:
        return None
    network = by_name[model]
    # The displayed name contains the file name of the weights, so that a comparison can contain
    # several weights of a network.
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
    """Return those settings that are parameters of an estimator."""
    accepted = inspect.signature(estimator).parameters
    return {key: value for key, value in settings.items() if key in accepted}


def _eegnet_at(sfreq: float) -> dict[str, Any]:
    """Return arguments of EEGNet; at 128 Hz, kernels have 64 and pooling has 4 samples."""
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
#: Arguments of networks with published settings, see the notes of :func:`make_methods`.
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

#: Columns of a cost table and their dtype, which allows missing values.
_COLUMNS = dict.fromkeys(embedder.TrainingCost._fields, "Int64")


def cost_table(estimators: Mapping[str, BaseEstimator], windows_ds: Dataset) -> pd.DataFrame:
    """Tabulate the training cost of one fit of each method, without training.

    Report the costs next to the scores, because two methods with different numbers of parameters or
    training steps are not directly comparable.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    windows_ds : BaseConcatDataset
        Labeled training windows. The descriptions of the recordings must contain ``subject``.

    Returns
    -------
    pandas.DataFrame
        One row for each method, with the columns ``method``, ``parameters`` (number of trained
        weights), ``pretraining_steps`` and ``finetuning_steps``. If a pretrained encoder was passed
        as ``encoder``, the steps in which it was pretrained are included. A value is missing
        (``<NA>``) if it is unknown, or if the method has no such cost, as for band power. The
        weights of a classifier on fixed features, such as the logistic regression of a linear
        probe, are not included.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        In the cases in which ``fit`` of a method raises an error before training.

    Notes
    -----
    The estimators of this package have a method ``training_cost(X, y, groups=...)``. To include the
    costs of your own estimator, define a method ``training_cost`` that returns an object with the
    attributes ``parameters``, ``pretraining_steps`` and ``finetuning_steps``.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.baselines import make_methods
    >>> from braindecode_pars.evaluation import cost_table
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> epochs = dict(pretrain_epochs=3, finetune_epochs=30)
    >>> methods = make_methods(["pars", "scratch", "band-power"], **epochs)
    >>> costs = cost_table(methods, windows)  # each epoch has one batch
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
        Number of encoder parameters by method name, for methods that have an encoder. Empty if the
        numbers are equal.

    Raises
    ------
    TypeError
        If ``equal_sizes`` is neither True nor False.
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
            "The encoders of all methods must have equal numbers of parameters, but the encoder of "
            f"{smallest} has {sizes[smallest]:,} and the encoder of {largest} has "
            f"{sizes[largest]:,}. Use the same sizes, tokenizer and patch_seconds for all methods, "
            "as make_methods(encoder=...) does. To compare encoders of different sizes anyway, "
            "pass equal_sizes=False (--unequal-sizes)."
        )
    return sizes


def _part_with(method: str, estimator: BaseEstimator) -> Any:
    """Return the estimator, or its first nested estimator, that has a method with this name."""
    parts = (estimator, *estimator.get_params().values())
    return next((part for part in parts if hasattr(part, method)), None)
