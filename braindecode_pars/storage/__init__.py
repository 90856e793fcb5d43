"""Files on disk: atomic writing, JSON, settings and tensors.

``_atomic`` writes a file completely or not at all. ``_json`` converts values to JSON and back,
``_settings`` compares settings, ``_tensors`` loads weights and reports which were loaded, and
``_hub`` finds the folder of a pretrained model.
"""

from braindecode_pars.storage._tensors import LoadReport

__all__ = ["LoadReport"]
