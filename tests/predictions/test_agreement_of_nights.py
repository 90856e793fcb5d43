"""Agreement over several nights, against YASA, a plain computation and single nights."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd
import pytest

from braindecode_pars.predictions import agreement

#: Stages of an expert, and predicted stages, of five nights; 1 to 3 are N1 to N3.
NIGHTS = [
    (
        "WWWWWWWWWWWWWWWWWWWWW3333311122222222222222222222222222222222222222211",
        "WWWW2WWWWWW3WWW2WWWWW3333311122222222222232222223223222222222222222211",
    ),
    (
        "WWWWWWWW1111111RRRWWWWWWWW11111111111111111111222222222222222222222222",
        "WWRRWWWW11111112RRWW2WWW1W1W11111111111111R11WR22221222122222R322222W2",
    ),
    (
        "WWWWWWWWWWWWWWWWWWWWW33WWWWWWWWWW222222222222222222222211111111111RRRR",
        "WWWWW3WWWWW2W1WWWWWWW33WRWW3WWWW32222222222222222232222111R1111111RRRR",
    ),
    (
        "WWWWWWWWWWWWWWWWWWWWRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRWWWWWWWWWWW33333333",
        "WWWWWWWWWWWWW12WWWWW2RRRRRWRRRRRRRRRRRRWR2RRRRRRRRRWWR21WWWWWW3332W333",
    ),
    (
        "WWWWWWRRRRRRWWWWWWWWWWWWW333333333333333333333333333333333333333333333",
        "W1WWWWRRRR1RW1RWRWWWWWW1W333233333333R3R331R33333W33333W33333333333333",
    ),
]
#: Values of YASA 0.8.1 (2026-11-29) for these nights: ``EpochByEpochAgreement.get_agreement`` ...
KAPPA = [0.858586, 0.714286, 0.839265, 0.750405, 0.67799]
#: ... and ``SleepStatsAgreement.summary(ci_method="param")``: bias, lower and upper limit, each
#: with its confidence interval. YASA omits statistics without any difference (TIB).
YASA = {
    "%N1": [1.7758, -4.7083, 8.2598, -8.4594, -19.6901, 2.7712, 12.011, 0.7803, 23.2416],
    "%N2": [-1.614, -12.4286, 9.2006, -18.6851, -37.4166, 0.0463, 15.4571, -3.2743, 34.1885],
    "%N3": [-1.3233, -14.726, 12.0793, -22.4797, -45.6937, 0.7343, 19.833, -3.381, 43.0471],
    "%REM": [1.1616, -8.1527, 10.4758, -13.5412, -29.6739, 2.5915, 15.8644, -0.2684, 31.9971],
    "Lat_REM": [-6.75, -22.6953, 9.1953, -26.3908, -54.0089, 1.2274, 12.8908, -14.7274, 40.5089],
    "N1": [0.7, -0.6602, 2.0602, -1.4471, -3.803, 0.9088, 2.8471, 0.4912, 5.203],
    "N2": [0.1, -1.9308, 2.1308, -3.1057, -6.6231, 0.4118, 3.3057, -0.2118, 6.8231],
    "N3": [0.0, -2.8787, 2.8787, -4.5441, -9.5301, 0.4419, 4.5441, -0.4419, 9.5301],
    "REM": [0.7, -1.1417, 2.5417, -2.2071, -5.397, 0.9827, 3.6071, 0.4173, 6.797],
    "SE": [4.2857, 0.9672, 7.6042, -0.9526, -6.7005, 4.7952, 9.524, 3.7762, 15.2719],
    "SME": [-9.0569, -18.3625, 0.2488, -23.7461, -39.864, -7.6282, 5.6324, -10.4855, 21.7503],
    "SOL": [-5.1, -8.704, -1.496, -10.7891, -17.0314, -4.5467, 0.5891, -5.6533, 6.8314],
    "SPT": [5.1, 1.496, 8.704, -0.5891, -6.8314, 5.6533, 10.7891, 4.5467, 17.0314],
    "TST": [1.5, 0.3385, 2.6615, -0.3334, -2.3451, 1.6783, 3.3334, 1.3217, 5.3451],
    "WAKE": [-1.5, -2.6615, -0.3385, -3.3334, -5.3451, -1.3217, 0.3334, -1.6783, 2.3451],
    "WASO": [3.6, 0.6421, 6.5579, -1.0692, -6.1924, 4.0541, 8.2692, 3.1459, 13.3924],
}
COLUMNS = [
    f"{name}{end}"
    for name in ("bias", "lower_limit", "upper_limit")
    for end in ("", "_ci_low", "_ci_high")
]
NAMES = dict(W="Wake", R="REM") | {n: f"N{n}" for n in "123"}


def inputs(nights):
    """Tables of predictions and annotations, by the name of the night."""
    onset = 30.0 * np.arange(70)
    frames, experts = {}, {}
    for number, (expert, predicted) in enumerate(nights):
        labels = [NAMES[stage] for stage in predicted]
        frames[f"P{number}"] = pd.DataFrame(dict(onset=onset, duration=30.0, label=labels))
        experts[f"P{number}"] = mne.Annotations(onset, 30, [NAMES[stage] for stage in expert])
    return frames, experts


@pytest.fixture(scope="module")
def result():
    return agreement(*inputs(NIGHTS))


def test_bias_and_limits_equal_those_of_yasa(result):
    kappa, _, statistics = result
    np.testing.assert_allclose(kappa, KAPPA, atol=1e-6)
    limits = statistics["limits"]
    for name, expected in YASA.items():
        np.testing.assert_allclose(
            limits.loc[name, COLUMNS].astype(float), expected, atol=2e-3, err_msg=name
        )
    assert (limits.loc["TIB", COLUMNS] == 0).all()
    # REM does not occur in the first night, so its latency is defined in four nights.
    assert (limits.loc["TIB", "n_nights"], limits.loc["Lat_REM", "n_nights"]) == (5, 4)


def test_each_night_has_the_result_of_a_single_call(result):
    frames, experts = inputs(NIGHTS)
    kappa, confusion, statistics = result
    total = 0
    for night in frames:
        kappa_of_night, counts, table = agreement(frames[night], experts[night])
        assert kappa[night] == kappa_of_night
        for name in ("predicted", "expert"):
            pd.testing.assert_series_equal(statistics[name][night], table[name], check_names=False)
        total = counts.reindex_like(confusion).fillna(0) + total
    pd.testing.assert_frame_equal(confusion, total, check_dtype=False, check_names=False)


def test_two_nights_have_no_limits():
    limits = agreement(*inputs(NIGHTS[:2]))[2]["limits"]
    assert limits[COLUMNS].isna().all(axis=None)
    assert (limits.loc["TST", "n_nights"], limits.loc["Lat_REM", "n_nights"]) == (2, 1)


def test_classes_that_are_no_stages_have_no_statistics():
    rows = pd.DataFrame(dict(onset=[0.0, 1.0], duration=1.0, label=["left", "right"]))
    expert = mne.Annotations([0, 1], 1, ["left", "left"])
    kappa, confusion, statistics = agreement(dict(a=rows, b=rows), dict(a=expert, b=expert))
    assert kappa.tolist() == [0, 0]
    assert confusion.loc["left"].to_dict() == {"left": 2, "right": 2}
    assert statistics.empty


def test_nights_of_predictions_and_expert_must_match():
    frames, experts = inputs(NIGHTS[:2])
    for nights in (experts | dict(P7=experts["P1"]), {}, experts["P1"]):
        with pytest.raises(ValueError, match="dicts with the same keys"):
            agreement(frames, nights)
    with pytest.raises(ValueError, match="No window"):
        agreement(frames, experts | dict(P1=mne.Annotations([9e5], 30, ["W"])))
