"""Study whether self-supervised pretraining improves classification on a dataset.

The function ``study`` runs a study from beginning to end. It calls the following modules in this
order. An arrow (->) leads from the input of a module to its output:

=================  =================================================================================
data_check         windows from any source -> tables -> findings, which may stop the study
study_methods      definitions of the methods, and of the steps in which the methods are scored
study_design       settings -> plan: folds of subjects, draws (random subsets) of labeled subjects,
                   and steps
study              plan -> results of all steps, computed in one or several processes
study_scores       one step -> CSV file with scores; recommended method -> saved classifier
study_results      CSV files -> Study, the result, with tables and comparisons
study_tests        scores -> tests, confidence intervals and a recommended method
study_answers      Study -> answers in sentences
study_report       Study -> HTML page
=================  =================================================================================
"""

from braindecode_pars.study.study import study
from braindecode_pars.study.study_results import Study

__all__ = ["Study", "study"]
