"""
Are the scores the same when folds run on a cluster?
====================================================

Yes, they are identical: the page runs twelve fits, once on a Dask cluster and once without it.
Leave-one-subject-out needs one fit per subject, method and seed, and the fits are independent. The
protocols run them with joblib, so any joblib backend can be used (processes, Dask, Ray). This page
uses Dask, with workers on this machine or in SLURM jobs.

:bdg-success:`real recordings` :bdg-secondary:`30 s`
"""

# %%
# The cluster
# -----------
#
# Only this function depends on the machines. Each worker has one thread, because folds in the same
# process run sequentially. ``SLURMCluster`` of ``dask-jobqueue`` submits one job per worker;
# it has similar classes for other schedulers (PBS, LSF, SGE). With ``--gres=gpu:1``, each
# fold has its own GPU.

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
    # Threads of this process as workers start quickly, but run the folds sequentially.
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )


# %%
# The same call with and without a cluster
# ----------------------------------------
#
# ``joblib.parallel_config`` selects the backend, which also sets ``n_jobs``. The data are sent to
# the workers; windows that are read from files need a shared file system. With ``out=``, a folder,
# every finished fold is stored, and the same call resumes after an interruption.

windows_ds = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(6)])
methods = make_methods(["scratch", "band-power"], finetune_epochs=10)

with make_cluster("local") as cluster, Client(cluster) as client:
    # cluster.scale(jobs=12)  # for SLURM: submit twelve jobs, and wait until the first one starts
    client.wait_for_workers(1)
    with joblib.parallel_config("dask"):
        on_dask = compare(methods, windows_ds, verbose=0)

# %%
# Every fold has its own seeds, so its scores do not depend on the machine.

local = compare(methods, windows_ds, verbose=0)
print("same scores:", on_dask["value"].equals(local["value"]))

# %%
# SLURM jobs
# ----------
#
# ``cluster.scale(jobs=12)`` submits twelve jobs with these settings, each of which starts a worker:

with make_cluster("slurm") as cluster:
    print(*[line for line in cluster.job_script().splitlines() if "#SBATCH" in line], sep="\n")

# %%
# Scores of the methods. Six subjects are too few to detect a difference between them.

print(describe_differences(paired_tests(on_dask)))
plotting.subject_dots(on_dask, "kappa", "Cohen's kappa")
# sphinx_gallery_alt = "Cohen's kappa of six subjects: one dot for training from scratch, one for"
# sphinx_gallery_alt = "log band power"
plt.show()

# sphinx_gallery_thumbnail_path = "images/thumbnails/folds_on_dask.png"
