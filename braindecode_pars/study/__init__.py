"""Study whether self-supervised pretraining improves classification on a dataset."""

from braindecode_pars.study.study import study
from braindecode_pars.study.study_results import Study

__all__ = ["Study", "study"]
