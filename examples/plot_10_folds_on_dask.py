"""
Folds on a cluster: are the scores the same?
============================================

Are the scores the same when the folds run on a cluster? On this page they are equal. Leaving one
subject out needs one fit for each subject and seed, and the fits are independent. The protocols run
them with joblib, so any backend of joblib works (processes, Dask, Ray). This page uses Dask, with
workers on this machine or in jobs of SLURM.
"""

# %%
# The cluster
# -----------
#
# This function is the only place that depends on the machines. Each worker has one thread, because
# folds in the same process run one after another. ``SLURMCluster``, from ``dask-jobqueue``, submits
# a job for each worker; other schedulers (PBS, LSF, SGE) have such a class too. With
# ``--gres=gpu:1``, each fold has a GPU for itself.

import joblib
import matplotlib.pyplot as plt
from distributed import Client, LocalCluster

from braindecode_pars import datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import compare, describe_differences, paired_tests


def make_cluster(where):
    """Return a Dask cluster on this machine or of SLURM jobs."""
    if where == "slurm":
        from dask_jobqueue import SLURMCluster

        return SLURMCluster(
            queue="gpu",
            cores=1,
            memory="16GB",
            walltime="04:00:00",
            job_extra_directives=["--gres=gpu:1"],
            scheduler_options={"dashboard_address": ":0"},  # any free port
        )
    # Threads of this process as workers: they start fast, but run the folds one after another.
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )


# %%
# The same call with and without a cluster
# ----------------------------------------
#
# ``joblib.parallel_config`` selects the backend, which also sets ``n_jobs``. The data travel to the
# workers; windows that are read from files need a disk that all machines share. With ``out=``, a
# folder, every finished fold is stored, and the same call resumes with the others after an end.

windows_ds = datasets.simulated.sleep(n_subjects=6, hours=0.2, n_chans=2, sfreq=100, random_state=1)
methods = make_methods(["scratch", "band-power"], finetune_epochs=5)

with make_cluster("local") as cluster, Client(cluster) as client:
    # cluster.scale(jobs=12)  # for SLURM: submit twelve jobs, and wait for the first in the queue
    client.wait_for_workers(1)
    with joblib.parallel_config("dask"):
        on_dask = compare(methods, windows_ds, verbose=0)

# %%
# Every fold has its own seeds, so its scores do not depend on where it runs.

local = compare(methods, windows_ds, verbose=0)
print("same scores:", on_dask["value"].equals(local["value"]))

# %%
# The jobs of SLURM
# -----------------
#
# ``cluster.scale(jobs=12)`` submits this script twelve times. Without SLURM, it is only shown:

with make_cluster("slurm") as cluster:
    print(cluster.job_script())

# %%
# Band-power features are ahead of a small network that is trained for five epochs:

print(describe_differences(paired_tests(on_dask)))
plotting.paired_bars(on_dask, "kappa", "Cohen's kappa")
plt.show()
