"""Read and preprocess EEG recordings, and cut them into windows.

The modules of :mod:`braindecode_pars.datasets` are built on this package:

- ``folders`` searches a folder for recordings. ``search`` finds the files of each recording, and
  derives its subject from its path.
- ``readers`` opens a recording, and ``side_tables`` reads its BIDS tables. ``channel_facts``
  decides which channels are EEG. ``first_look`` selects the channels shared by all recordings.
- ``preparation`` preprocesses a recording, and ``cutting`` cuts it into windows. ``label_files``
  reads labels from annotations, tables or paths.
- ``loading`` reads all recordings of a corpus in parallel. A ``recipe`` defines how the recordings
  of one corpus are listed, preprocessed and cut.
- ``as_trained`` preprocesses a new recording like the training data of a model.
- ``braindecode_zarr`` reads and writes datasets in the Zarr format of braindecode.
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
