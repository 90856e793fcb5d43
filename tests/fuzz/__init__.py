"""A seeded fuzz of the package: odd inputs, parameters, folders and command lines.

``outcomes`` sorts a case by its outcome, ``small`` has the small data and models, and the other
modules draw the cases of one area each.
"""
