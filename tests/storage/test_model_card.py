"""Model cards: their header, and a section for each question."""

from __future__ import annotations

import pytest

from braindecode_pars.pretrained.cards import model_card

CARD = {
    "task": "pars",
    "sfreq": 100.0,
    "subjects": None,
    "finetune_subjects": ["me"],
    "n_windows": 1200,
    "epochs": 3,
    "loss_relative": 0.81234,
    "about": {
        **{"license": "ODC-BY 1.0", "band": [0.3, None], "description": "Of TUEG."},
        **{"n_subjects": 1, "corpora": ["tueg"]},
    },
}
CLASSIFIER = {
    "network": {"n_times": 3000, "chs_info": [{"ch_name": "C3"}, {"ch_name": "C4"}]},
    "classifier": {
        "classes": {"values": [0, 1]},
        "class_names": ["wake", "sleep"],
        "windows": {"sfreq": 100.0},
        "pretraining": CARD,
    },
}


def header_of(text):
    cards = pytest.importorskip("huggingface_hub", reason="huggingface_hub is absent")
    return cards.ModelCard(text).data.to_dict()


def test_the_header_is_that_of_the_hub():
    """That of a classifier has no license: the one on the card is that of its encoder."""
    tags = ["eeg", "braindecode", "self-supervised-learning", "PARSClassifier", "pars"]
    assert header_of(model_card("PARSClassifier", CLASSIFIER)) == {
        "library_name": "braindecode_pars",
        "tags": tags,
        "pipeline_tag": "other",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CC BY 4.0", {"license": "cc-by-4.0"}),
        ("ODC-BY 1.0", {"license": "odc-by"}),
        ('Ours: "ask" 1.0\n', {"license": "other", "license_name": "ours-ask-1.0"}),
        (None, {}),
    ],
)
def test_licenses(name, expected):
    described = {"pretraining": {"about": {"license": name}}, "encoder": {}}
    header = header_of(model_card("PatchEncoder", described))
    assert {key: value for key, value in header.items() if "license" in key} == expected


def test_the_sections_of_a_classifier():
    text = model_card("PARSClassifier", CLASSIFIER, source="hf://me/it")
    for line in (
        "# PARSClassifier for EEG\n\n## Task",
        "2 classes: 0 (wake), 1 (sleep).",
        'PARSClassifier.from_pretrained("hf://me/it")',
        "- Pretraining: 1 subject, 1,200 windows, 3 epochs",
        "- Fine-tuning: 1 subject (me)",
        "- Corpora: tueg",
        "- Band: from 0.3 Hz",
        "- Notch: unknown",
        "- Channels: C3, C4",
        "- Windows: 30 s",
        "no scores on held-out subjects",
        ": 0.812.",
        "## License\n\nNot stated: ask the authors before you use the model.\nIts encoder: ODC-BY",
    ):
        assert line in text, line
    sections = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert sections == [
        *("Task", "Use", "Data", "Preprocessing", "Encoder"),
        *("Scores", "Intended use", "Limitations", "License"),
    ]


def test_preprocessing_of_the_model_wins_over_that_of_its_encoder():
    known = {"band": [0.5, 35.0], "notch": [50.0], "reference": "average", "channels": ["Fz"]}
    known |= {"scale": 1e6, "window_seconds": 20.0}
    card = {**CARD, "preprocessing": {"band": [1.0, 20.0], "notch": []}}
    described = {"pretraining": card, "encoder": {}}
    text = model_card("PARSEmbedder", {**described, "embedder": {"preprocessing": known}})
    for line in (
        "- Band: 0.5-35 Hz",
        "- Notch: 50 Hz",
        "- Reference: average",
        "- Channels: Fz",
        "- Unit: microvolts",
        "- Windows: 20 s",
    ):
        assert line in text
    assert "- Notch: none" in model_card("PatchEncoder", described)


def test_the_card_of_an_encoder_states_its_own_facts_or_that_they_are_unknown():
    text = model_card("PatchEncoder", {"pretraining": CARD, "encoder": {}})
    assert "\nOf TUEG.\n" in text
    assert "## License\n\nODC-BY 1.0.\n" in text
    card = {"subjects": None, "finetune_subjects": None}
    text = model_card("PatchEncoder", {"pretraining": card, "encoder": {}})
    assert "- Pretraining: unknown subjects" in text
    assert "Sampling rate: unknown" in text
