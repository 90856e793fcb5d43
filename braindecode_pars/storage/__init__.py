"""Files on disk: atomic writing, JSON, settings and models.

``_atomic`` writes a file completely or not at all, and ``_folder`` refuses to write where other
files are. ``_json`` converts values to JSON and back, ``_settings`` compares settings, and
``_checksum`` and ``_checked_json`` detect changes. ``_model_file`` is a model in one file,
``_model_folder`` the folder of a model, ``_tensors`` loads weights and reports which were loaded,
``_packaged`` knows the encoders in the package, and ``_hub`` finds the folder of
a pretrained model.
"""

from braindecode_pars.storage._tensors import LoadReport

__all__ = ["LoadReport"]
