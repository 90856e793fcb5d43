"""
Folds on a cluster: are the scores the same?
============================================

Are the scores the same when the folds run on a cluster? On this page they are equal. Leaving one
subject out needs one fit for each subject, and the fits are independent. The protocols run their
folds with joblib, so any backend of joblib works (processes, Dask, Ray). This page uses a local
Dask cluster. For a cluster of several machines, use ``Client("tcp://scheduler:8786")``.
"""

# %%
# The same call with and without a cluster
# ----------------------------------------
#
# ``joblib.parallel_config`` selects the backend, which also sets ``n_jobs``. With ``out=``, every
# finished fold is stored in a folder, and an interrupted run resumes from it. On a real cluster,
# use ``threads_per_worker=1``: folds in the same process run one after another.

import joblib
import matplotlib.pyplot as plt
from distributed import Client, LocalCluster

from braindecode_pars import datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import compare, describe_differences, paired_tests

windows_ds = datasets.simulated.sleep(n_subjects=6, hours=0.2, n_chans=2, sfreq=100, random_state=1)
methods = make_methods(["scratch", "band-power"], finetune_epochs=5)

# Both workers are threads of this process, which starts fast but runs the folds one after another.
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
with cluster, Client(cluster), joblib.parallel_config("dask"):
    on_dask = compare(methods, windows_ds, verbose=0)

# %%
# Every fold has its own seeds, so its scores do not depend on where it runs.

local = compare(methods, windows_ds, verbose=0)
print("same scores:", on_dask["value"].equals(local["value"]))

# %%
# With six subjects, the difference between the two methods is not significant:

print(describe_differences(paired_tests(on_dask)))
plotting.paired_bars(on_dask, "kappa", "Cohen's kappa")
plt.show()
