"""Does pretraining help on these recordings? A plan, scores, tests and a report."""

from braindecode_pars.study.study import study
from braindecode_pars.study.study_results import Study

__all__ = ["Study", "study"]
