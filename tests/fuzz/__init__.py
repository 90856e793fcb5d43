"""Damaged folders with seeds, folders of other programs, and writers that are killed.

``outcomes`` sorts a case by its outcome, ``small`` has the small data and models, and ``folders``
draws the cases. All run with the slow tests, except the tests of ``outcomes``. Inputs and arguments
have complete tables: ``tests/test_equal_inputs.py``, ``tests/test_bad_input.py`` and
``tests/test_argument_types.py``.
"""
