"""Random folders, sequences of calls and command lines, with seeds.

``outcomes`` sorts a case by its outcome, ``small`` has the small data and models, and the other
modules draw the cases of one area each. All run with the slow tests, except the tests of
``outcomes``. Inputs and arguments have complete tables: ``tests/test_equal_inputs.py``,
``tests/test_bad_input.py`` and ``tests/test_argument_types.py``.
"""
