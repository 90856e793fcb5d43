"""Read and preprocess EEG recordings, and cut them into windows.

These are the building blocks of :mod:`braindecode_pars.datasets`.
``folders`` searches a folder for recordings, and ``search`` finds the files and the subject of each
recording. ``readers`` opens a recording with its BIDS tables, which ``side_tables`` reads;
``channel_facts`` decides which channels are EEG. ``preparation`` preprocesses the recording,
``cutting`` cuts it into windows, and ``label_files`` reads labels from annotations or tables.
``loading`` reads all recordings of a corpus in parallel. A ``recipe`` defines these steps for a
corpus. ``as_trained`` preprocesses a recording like the training data of a model.
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
            "split_subjects",
        ],
        "recordings.preparation": [
            "check_filters",
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
