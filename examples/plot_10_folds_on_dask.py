"""
Folds on a cluster: are the scores the same?
============================================

Leaving one person out means as many fits as there are people, and none of them waits for another.
The protocols hand their folds to joblib, so whatever joblib runs on (processes, Dask, Ray) runs
them. Here it is a local Dask cluster; ``Client("tcp://scheduler:8786")`` would be one of many
machines.
"""

# %%
# The same call, here and on a cluster
# ------------------------------------
#
# ``joblib.parallel_config`` names where; ``n_jobs`` is left to it. With ``out=``, every finished
# fold is kept in a folder, so that an interrupted run goes on where it was. A real cluster wants
# ``threads_per_worker=1``: folds that meet in one process take turns.

import joblib
import matplotlib.pyplot as plt
from distributed import Client, LocalCluster

from braindecode_pars import datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import compare, describe_differences, paired_tests

windows_ds = datasets.simulated.sleep(n_subjects=6, hours=0.2, n_chans=2, sfreq=100, random_state=1)
methods = make_methods(["scratch", "band-power"], finetune_epochs=5)

# Both workers live in this process, so that the page starts at once; hence they take turns.
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
with cluster, Client(cluster), joblib.parallel_config("dask"):
    on_dask = compare(methods, windows_ds, verbose=0)

# %%
# Every fold has seeds of its own, so where it ran does not change what came out.

here = compare(methods, windows_ds, verbose=0)
print("the same scores:", on_dask["value"].equals(here["value"]))

# %%
# Six people, and what may be said of the difference between the two methods.

print(describe_differences(paired_tests(on_dask)))
plotting.paired_bars(on_dask, "kappa", "Cohen's kappa")
plt.show()
