"""From files to windows: the building blocks of the datasets.

A recording is found (``folders``) with the files it consists of and its subject (``search``),
opened with the tables beside it (``readers``), prepared (``preparation``) and cut into windows
(``cutting``), with labels from its annotations or a table (``label_files``). ``loading`` does this
for a whole corpus, in parallel; a ``recipe`` says how a corpus is found, prepared and cut.
``as_trained`` does what was done with the recordings of a model with another recording.
"""

import lazy_loader

import braindecode_pars._common.hosts  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach(
    "braindecode_pars",
    submod_attrs={
        "recordings.cutting": ["event_windows", "fixed_windows", "name_classes"],
        "recordings.loading": [
            "Recording",
            "choose_subjects",
            "read_corpus",
            "set_splits",
            "split_subjects",
        ],
        "recordings.preparation": [
            "check_filters",
            "drop_other_signals",
            "filter_and_resample",
            "pick_electrodes",
            "set_reference",
        ],
        "windows.preprocessing": ["Difference", "Preprocessing", "differences"],
        "recordings.recipe": ["ContinuousCorpus", "Recipe"],
        "recordings.readers": ["read_edf", "read_recording", "read_wfdb"],
        "_common.sleep_stages": ["aasm_stages"],
    },
)
