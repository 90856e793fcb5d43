"""The names in the help texts, repeated here because importing the registries takes seconds.

A test compares them with the registries.
"""

TASKS = ("pars", "mae", "spectral", "mp3", "droppos", "joint")
CORPORA = ("eegmat", "eesm17", "physionet_mi", "tuab", "tueg", "tusz", "ysyw")
_PROBES = ("probe", "random-probe")
METHODS = (*TASKS, "scratch", *_PROBES, "eegnet", "shallow", "band-power", "tangent-space")
METRICS = (
    "kappa",
    "balanced_accuracy",
    "accuracy",
    "f1",
    "f1_weighted",
    "auroc",
    "average_precision",
)
GRIDS = ("masking", "sampling", "decoder", "overlap", "joint")
BENCHMARKS = (
    "pars-step",
    "task-steps",
    "tokenizers",
    "decoder-time",
    "decoder-memory",
    "long-sequence",
    "channel-drop",
    "reading",
    "labels",
    "training-loop",
    "estimators",
    "inference",
    "predict-raw",
    "cuda",
)
