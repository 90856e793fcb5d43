"""What is kept on disk: files that are there as a whole or not at all, JSON, and tensors.

``_atomic`` writes, ``_json`` and ``_settings`` turn values into text and compare them, ``_tensors``
loads weights and reports what was loaded, ``_hub`` finds the folder of a model.
"""

from braindecode_pars.storage._tensors import LoadReport

__all__ = ["LoadReport"]
