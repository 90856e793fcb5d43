"""
Are the scores the same when the folds run on a cluster?
========================================================

Yes, equal to the last digit: here are twelve fits, once on a Dask cluster and once without it.
Leaving one subject out needs one fit for each subject, method and seed, and the fits are
independent. The protocols run them with joblib, so any backend of joblib works (processes, Dask,
Ray). This page uses Dask, with workers on this machine or in jobs of SLURM.

:bdg-success:`real recordings` :bdg-secondary:`30 s`
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

windows_ds = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(6)])
methods = make_methods(["scratch", "band-power"], finetune_epochs=10)

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
# ``cluster.scale(jobs=12)`` submits twelve jobs with these settings, each of which starts a worker:

with make_cluster("slurm") as cluster:
    print(*[line for line in cluster.job_script().splitlines() if "#SBATCH" in line], sep="\n")

# %%
# The scores themselves: six people are too few for a difference between the methods.

print(describe_differences(paired_tests(on_dask)))
plotting.subject_dots(on_dask, "kappa", "Cohen's kappa")
# sphinx_gallery_alt = "Cohen's kappa of six people: a dot for scratch, one for band power"
plt.show()

# sphinx_gallery_thumbnail_path = "images/thumbnails/folds_on_dask.png"
