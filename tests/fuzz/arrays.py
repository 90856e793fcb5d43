"""Windows as arrays: odd types, orders and containers, and relations that must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from hypothesis import strategies as st
from skorch.helper import SliceDataset
from torch.utils.data import Subset, TensorDataset

from fuzz import small
from fuzz.outcomes import Case, refused


class Labeled(torch.utils.data.Dataset):
    """Windows with labels, as (window, label, indices)."""

    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], int(small.LABELS[i % 12]), [i, 0, small.N_TIMES]


def _memory_map(X, folder):
    np.save(folder / "windows.npy", X)
    return np.load(folder / "windows.npy", mmap_mode="r")


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


#: Other forms of the same windows.
SAME = {
    "float64": lambda X, _: X.astype(float),
    "longdouble": lambda X, _: X.astype(np.longdouble),
    "big-endian float32": lambda X, _: X.astype(">f4"),
    "big-endian float64": lambda X, _: X.astype(">f8"),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "transposed memory": lambda X, _: np.ascontiguousarray(X.transpose(2, 0, 1)).transpose(1, 2, 0),
    "negative strides": lambda X, _: np.ascontiguousarray(X[:, ::-1, ::-1])[:, ::-1, ::-1],
    "every second sample": lambda X, _: np.repeat(X, 2, axis=2)[:, :, ::2],
    "read-only": lambda X, _: _read_only(X),
    "memory map": _memory_map,
    "masked array without a mask": lambda X, _: np.ma.masked_array(X),
    "float32 tensor": lambda X, _: torch.from_numpy(X),
    "float64 tensor": lambda X, _: torch.from_numpy(X.astype(float)),
    "strided tensor": lambda X, _: torch.from_numpy(np.repeat(X, 2, axis=2))[:, :, ::2],
    "tensor with a gradient": lambda X, _: torch.from_numpy(X).requires_grad_(),
    "list of arrays": lambda X, _: list(X),
    "list of tensors": lambda X, _: [torch.from_numpy(window) for window in X],
    "list of lists": lambda X, _: X.tolist(),
    "tuple of arrays": lambda X, _: tuple(X),
    "list of tuples": lambda X, _: [Labeled(X)[i] for i in range(len(X))],
    "torch dataset": lambda X, _: Labeled(X),
    "subset": lambda X, _: Subset(Labeled(X), range(len(X))),
    "nested subset": lambda X, _: Subset(Subset(Labeled(X), range(len(X))), list(range(len(X)))),
    "slice dataset": lambda X, _: SliceDataset(Labeled(X)),
    "tensor dataset": lambda X, _: TensorDataset(torch.from_numpy(X), torch.zeros(len(X))),
}


def _with(index: tuple, value: float) -> Any:
    def change(X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[index] = value
        return X

    return change


#: Windows that cannot be used.
UNUSABLE = {
    "NaN": _with((3, 1, 7), np.nan),
    "infinity": _with((0, 0, 0), np.inf),
    "minus infinity in the last sample": _with((11, 1, 299), -np.inf),
    "all NaN": lambda X: X * np.nan,
    "beyond float32": lambda X: X.astype(float) * 1e300,
    "a masked sample": lambda X: np.ma.masked_where(np.arange(X.size).reshape(X.shape) == 5, X),
    "complex": lambda X: X + 1j,
    "complex tensor": lambda X: torch.from_numpy(X + 1j),
    "booleans": lambda X: X > 0,
    "objects": lambda X: X.astype(object),
    "strings": lambda X: X[:, :, :40].astype(str),
    "bytes": lambda X: X[:, :, :40].astype("S"),
    "dates": lambda X: X.astype("datetime64[s]"),
    "a record": lambda X: np.zeros(12, dtype=[("a", "f4", (2, 300))]),
    "one window without its axis": lambda X: X[0],
    "one channel": lambda X: X[0, 0],
    "a number": lambda X: X[0, 0, 0],
    "four axes": lambda X: X[None],
    "no channels": lambda X: X[:, :0],
    "no samples": lambda X: X[:, :, :0],
    "one sample": lambda X: X[:, :, :1],
    "less than a patch": lambda X: X[:, :, :99],
    "None": lambda X: None,
    "text": lambda X: "windows.npy",
    "a dict": lambda X: {"X": X},
    "a set": lambda X: {1, 2, 3},
    "a generator": lambda X: (window for window in X),
    "a DataFrame": lambda X: pd.DataFrame(X[:, 0]),
    "a sparse matrix": lambda X: scipy.sparse.csr_matrix(X[:, 0]),
    "windows of two lengths": lambda X: [X[0], X[1, :, :200], *X[2:]],
    "windows of two montages": lambda X: [X[0], X[1, :1], *X[2:]],
    "windows and None": lambda X: [X[0], None, *X[2:]],
    "strings in a list": lambda X: ["a", "b"],
    "a torch module": lambda X: torch.nn.Linear(2, 2),
    "a class": lambda X: np.ndarray,
}


@st.composite
def forms(draw):
    """The same windows in another form give the same output, fitted or only predicted."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    form, seed = draw(st.sampled_from(sorted(SAME))), draw(st.integers(0, 999))
    fit = draw(st.integers(0, 3)) == 0
    X = small.signals(seed)
    text = f"{name}, {'fitted and ' if fit else ''}applied to {form} of signals({seed})"

    def act(folder):
        inputs = SAME[form](X, folder)
        model = small.fitted(name)
        if fit:
            model = small.make(name, sfreq=small.SFREQ).fit(inputs, small.LABELS)
        return small.output(model, inputs)

    def problem(returned):
        model = small.fitted(name)
        if fit:
            model = small.make(name, sfreq=small.SFREQ).fit(X, small.LABELS)
        return small.differs(returned, small.output(model, X))

    return Case(text, act, problem)


@st.composite
def unusable(draw):
    """Windows that cannot be used are refused in fit and in predict."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    form, seed = draw(st.sampled_from(sorted(UNUSABLE))), draw(st.integers(0, 99))
    fit = draw(st.booleans())
    if name in ("network", "band power") and form == "less than a patch":
        form = "one sample"
    if name == "band power":
        fit = False  # it has nothing to learn, so its fit does not read the windows

    def act(folder):
        inputs = UNUSABLE[form](small.signals(seed))
        if fit:
            return small.make(name, sfreq=small.SFREQ).fit(inputs, small.LABELS)
        return small.output(small.fitted(name), inputs)

    text = f"{name}.{'fit' if fit else 'predict_proba or transform'} of {form}, signals({seed})"
    return Case(text, act, refused(form))


@st.composite
def related(draw):
    """Windows in another order, another unit or with an offset: a relation to the first output."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    seed, kind = draw(st.integers(0, 999)), draw(st.integers(0, 4))
    X = small.signals(seed)
    rng = np.random.default_rng(seed)
    order = np.arange(len(X))
    if name == "embedder" and kind == 4:
        kind = 3  # it keeps channels side by side
    if kind <= 1 or name in ("network", "band power"):
        order = rng.integers(0, len(X), draw(st.integers(1, 30)))
        other, text = X[order], f"windows {order.tolist()}"
    elif kind == 2:
        factor = draw(st.sampled_from([1e-11, 1e-6, 1e-3, 1e3, 1e6, 1e9, 1e20, 1e-25, 1e-15]))
        other, text = X.astype(float) * factor, f"scaled by {factor:g}"
    elif kind == 3:
        offset = draw(st.sampled_from([1e-5, 1e-2, 1.0, 1e3, 1e6]))
        other, text = X + np.float32(offset), f"with an offset of {offset:g} V"
    else:
        other, text = X[:, ::-1], "with both channels exchanged, without names"

    def act(folder):
        return small.output(small.fitted(name), other)

    def problem(returned):
        return small.differs(returned, small.output(small.fitted(name), X)[order], rtol=1e-2)

    return Case(f"{name} of signals({seed}) {text}", act, problem)


@st.composite
def integers(draw):
    """Integers are converted to real numbers, whatever their width."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    dtype = draw(st.sampled_from(["int16", "int32", "int64", "uint8", "uint16", ">i2", "float16"]))
    seed = draw(st.integers(0, 999))
    X = small.signals(seed)
    X = (100 + 20 * (X / X.std(axis=(0, 2), keepdims=True)).clip(-4, 4)).astype(dtype)

    def act(folder):
        return small.output(small.fitted(name), X)

    def problem(returned):
        return small.differs(returned, small.output(small.fitted(name), X.astype("float32")))

    return Case(f"{name} of {dtype}, seed {seed}", act, problem)


cases = st.one_of(forms(), forms(), unusable(), unusable(), related(), integers())
