"""From files to windows: the building blocks of the datasets.

A recording is found (``search``), opened with the tables beside it (``readers``), prepared
(``preparation``) and cut into windows (``cutting``), with labels from its annotations or a table
(``label_files``); ``sleep_stages`` knows the names of stages. ``loading`` does this for a whole
corpus, in parallel; a ``recipe`` says how a corpus is found, prepared and cut. ``preprocessing``
describes what was done, and ``as_trained`` does the same with another recording.
"""

import lazy_loader

import braindecode_pars._common.hosts  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cutting": ["event_windows", "fixed_windows", "name_classes"],
        "loading": ["Recording", "choose_subjects", "read_corpus", "set_splits", "split_subjects"],
        "preparation": [
            "check_filters",
            "drop_other_signals",
            "filter_and_resample",
            "pick_electrodes",
            "set_reference",
        ],
        "preprocessing": ["Difference", "Preprocessing", "differences"],
        "recipe": ["ContinuousCorpus", "Recipe"],
        "readers": ["read_edf", "read_recording", "read_wfdb"],
        "sleep_stages": ["aasm_stages"],
    },
)
