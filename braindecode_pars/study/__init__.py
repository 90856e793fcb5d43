"""Study whether self-supervised pretraining improves classification on a dataset.

``study`` runs a study from beginning to end. It uses these modules, in this order. An arrow leads
from the input of a module to its output:

=================  =================================================================================
data_check         windows of any source -> tables -> findings, which may stop the study
study_methods      methods that are compared, and the steps in which they are scored
study_design       settings -> plan: folds of subjects, draws of labeled subjects, and steps
study              steps of a plan -> results, in one or several processes
study_scores       one step -> CSV file with scores; recommended method -> saved classifier
study_results      CSV files -> result, with tables and comparisons
study_tests        scores -> tests, confidence intervals and a recommendation
study_answers      result -> answers in sentences
study_report       result -> HTML page
=================  =================================================================================
"""

from braindecode_pars.study.study import study
from braindecode_pars.study.study_results import Study

__all__ = ["Study", "study"]
