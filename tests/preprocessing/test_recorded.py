"""The preprocessing of a recording, read from its records."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.preprocessing import Preprocessing, recorded


def recording(sfreq=200.0, **arguments):
    noise = 1e-5 * np.random.default_rng(0).standard_normal((3, 20_000))
    info = mne.create_info(["C3", "C4", "Cz"], sfreq, "eeg")
    return mne.io.RawArray(noise, info, verbose="error")


def step(fn, **kwargs):
    return {"fn": fn, "kwargs": kwargs}


def test_an_array_tells_its_rate_only():
    assert recorded(recording().info) == Preprocessing(sfreq=200.0)


def test_the_info_tells_what_was_done():
    raw = recording().filter(0.3, 40.0, verbose="error")
    raw.set_eeg_reference("average", projection=True, verbose="error").apply_proj(verbose="error")
    found = recorded(raw.info)
    assert (found.band, found.reference) == ((0.3, 40.0), "average")
    assert (found.notch, found.scale) == (None, None)  # not told
    raw.set_eeg_reference(["Cz"], verbose="error")
    assert recorded(raw.info).reference is None  # another one, but not which


def test_half_the_rate_is_no_filter():
    assert recorded(recording().filter(0.5, None, verbose="error").info).band == (0.5, None)
    assert recorded(recording().filter(None, 30, verbose="error").info).band == (None, 30.0)
    # A filter above half of a later rate has left nothing to filter.
    raw = recording().filter(0.5, 60, verbose="error").resample(100)
    assert recorded(raw.info).band == (0.5, None)


def test_single_precision_of_a_file_is_not_shown(tmp_path):
    file = tmp_path / "one_raw.fif"
    recording().filter(0.3, 40.0, verbose="error").save(file, verbose="error")
    assert recorded(mne.io.read_info(file, verbose="error")).band == (0.3, 40.0)


def test_steps_also_tell_what_was_not_done():
    info = recording().info
    found = recorded(info, [step("pick", picks=["C3"])])
    assert found == Preprocessing(200.0, (None, None), (), "as recorded", 1.0)
    found = recorded(info, [step("notch_filter", freqs=np.array([60.0, 50.0, 150.0]))])
    assert found.notch == (50.0, 60.0)  # 150 Hz is above half the rate


@pytest.mark.parametrize(
    "unknown", [step("numpy.<lambda>"), step("apply_function"), step("savgol_filter"), None]
)
def test_behind_a_step_of_unknown_effect_only_what_was_done_is_known(unknown):
    info = recording().info
    assert recorded(info, [unknown]) == Preprocessing(200.0)
    found = recorded(info, [step("filter", l_freq=4, h_freq=38), unknown, step("pick")])
    assert found == Preprocessing(200.0, (4.0, 38.0))


def test_the_narrowest_filter_counts():
    steps = [step("filter", l_freq=0.5, h_freq=30), step("filter", l_freq=0.1, h_freq=60)]
    assert recorded(recording().info, steps).band == (0.5, 30.0)
    band_stop = step("filter", l_freq=61, h_freq=59)
    assert recorded(recording().info, [*steps, band_stop]).band == (0.5, 30.0)
    assert recorded(recording().info, [step("filter", l_freq=40), steps[0]]).band is None


@pytest.mark.parametrize(
    ("kwargs", "reference"),
    [
        ({}, "average"),
        (dict(ref_channels="average"), "average"),
        (dict(ref_channels=["A1", "A2"]), "A1, A2"),
        (dict(ref_channels="Cz"), "Cz"),
        (dict(ref_channels=[]), "as recorded"),
        (dict(ref_channels={"C3": "A2"}), None),
    ],
)
def test_references(kwargs, reference):
    found = recorded(recording().info, [step("set_eeg_reference", **kwargs)])
    assert found.reference == reference


def test_the_average_as_a_projection_counts_when_it_is_applied():
    raw = recording().set_eeg_reference("average", projection=True, verbose="error")
    steps = [step("set_eeg_reference", projection=True)]
    assert recorded(raw.info, steps).reference == "as recorded"
    steps += [step("apply_proj")]
    assert recorded(raw.apply_proj(verbose="error").info, steps).reference == "average"


def test_factors_are_multiplied():
    steps = [step("rescale", scalings=1e6), step("numpy.multiply", factor=1e-3), step("pick")]
    assert recorded(recording().info, steps).scale == pytest.approx(1e3)


def test_the_notch_searched_by_mne_is_unknown():
    assert recorded(recording().info, [step("notch_filter", freqs=None)]).notch is None


def test_another_rate_after_the_steps():
    found = recorded(recording().info, [step("filter", l_freq=1, h_freq=60)], sfreq=100.0)
    assert (found.sfreq, found.band) == (100.0, (1.0, None))


def test_recorded_filters_count_before_the_header_of_a_file():
    """Readers write the filters of the amplifier into the info; they differ between recordings."""
    raw = recording().filter(0.5, 45.0, verbose="error")
    found = recorded(raw.info, [step("filter", l_freq=0.3, h_freq=None)])
    assert found.band == (0.3, None)
    assert recorded(raw.info, [step("notch_filter", freqs=50)]).band == (0.5, 45.0)
    assert recorded(raw.info, [step("filter", h_freq=30.0)]).band == (0.5, 30.0)


@pytest.mark.parametrize(
    ("before", "after", "reference"),
    [
        ([step("pick", picks=["C3", "C4", "Cz"])], [], "C3, C4, Cz"),
        (
            [step("pick_channels", ch_names=["Cz", "C3", "Fz"])],
            [step("pick", picks="Cz")],
            "Cz, C3, Fz",
        ),
        ([step("drop_channels", ch_names=["Fz"])], [], "C3, C4, Cz"),
        ([step("drop_channels", ch_names=["Fz"])], [step("pick", picks=["Cz"])], None),
        ([step("drop_channels", ch_names=["ECG"])], [], "average"),
        ([], [step("drop_channels", ch_names=["ECG"])], "average"),
        (
            [step("pick", picks=["C3", "C4", "ECG"])],
            [step("drop_channels", ch_names=["ECG"])],
            "C3, C4, ECG",
        ),
        ([step("pick", picks=[0, 1, 2])], [], "C3, C4, Cz"),
        ([step("pick", picks=np.array([0, 1, 2]))], [step("pick", picks=["Cz"])], None),
        ([step("pick_types", eeg=True, exclude=["Fz"])], [], "C3, C4, Cz"),
        ([step("pick_types", eeg=True, exclude="bads")], [], "average"),
        ([step("pick", picks=["eeg"]), step("pick_types", eeg=True)], [], "average"),
        ([step("filter", l_freq=1)], [step("pick", picks=["C3", "C4", "Cz"])], "average"),
    ],
)
def test_the_average_of_chosen_channels_is_that_of_their_names(before, after, reference):
    steps = [*before, step("set_eeg_reference", ref_channels="average"), *after]
    assert recorded(recording().info, steps).reference == reference


def test_the_kind_of_the_filter():
    iir = step("filter", l_freq=4, h_freq=38, method="iir")
    assert recorded(recording().info, [iir]).filter == "iir"
    assert recorded(recording().info, [step("filter", l_freq=4, h_freq=38)]).filter is None
    assert recorded(recording().info, [iir, step("filter", l_freq=4)]).filter is None  # both


@pytest.mark.parametrize(
    ("names", "types", "reference"),
    [
        (["C3", "C4", "ECG"], ["eeg", "eeg", "ecg"], "average"),
        (["C3", "C4", "ECG"], "eeg", "C3, C4, ECG"),
        (["C3", "C4", "A2-A1"], "eeg", "C3, C4, A2-A1"),
        (["C3-M2", "C4-M2"], "eeg", "average"),
        (["C3-M2", "C4-M1"], "eeg", "C3-M2, C4-M1"),
    ],
)
def test_the_average_is_that_of_all_channels_of_the_type_eeg(names, types, reference):
    info = mne.create_info(names, 200.0, types)
    assert recorded(info, [step("set_eeg_reference")]).reference == reference
