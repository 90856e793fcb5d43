"""
Are the scores the same when folds run on a cluster?
====================================================

Yes, they are identical. This page runs the same twelve fits twice, with and without a Dask cluster,
and compares the scores. Leave-one-subject-out cross-validation requires one fit for each
combination of subject, method and seed, and these fits are independent. Evaluation functions such
as ``compare`` run the fits with joblib, so you can use any joblib backend (processes, Dask, Ray).
Here, the backend is Dask, with workers on this machine or in SLURM jobs.

:bdg-success:`real recordings` :bdg-secondary:`30 s`
"""

# %%
# The cluster
# -----------
#
# The function below starts the cluster. It is the only code that depends on the machines. Each
# worker has one thread, because folds in the same process run one after the other. On a SLURM
# cluster, ``SLURMCluster`` of the package ``dask-jobqueue`` submits one job per worker. The same
# package has classes for other schedulers (PBS, LSF, SGE). With ``--gres=gpu:1``, each worker has
# its own GPU.

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
    # Here, the workers are threads of this process, which start quickly. The folds run one after
    # the other; use processes=True to run them in parallel.
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )


# %%
# The same call with and without a cluster
# ----------------------------------------
#
# ``joblib.parallel_config`` selects the backend, and the backend determines the number of parallel
# jobs (``n_jobs``). The data are sent to the workers. If windows are read from files, the files
# must be on a file system that all workers share. If you pass a folder as the argument ``out`` of
# ``compare``, every finished fold is stored in this folder, and the same call resumes after an
# interruption.

windows_ds = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(6)])
methods = make_methods(["scratch", "band-power"], finetune_epochs=10)

with make_cluster("local") as cluster, Client(cluster) as client:
    # cluster.scale(jobs=12)  # for SLURM: submit twelve jobs, and wait until the first one starts
    client.wait_for_workers(1)
    with joblib.parallel_config("dask"):
        on_dask = compare(methods, windows_ds, verbose=0)

# %%
# Now the same call runs without the cluster. The random numbers of a fold are determined by seeds
# that do not depend on the worker or on the order of the folds, so the scores are the same.

local = compare(methods, windows_ds, verbose=0)
print("same scores:", on_dask["value"].equals(local["value"]))

# %%
# SLURM jobs
# ----------
#
# On a SLURM cluster, ``cluster.scale(jobs=12)`` submits twelve jobs, each of which starts a worker.
# The following lines are the settings of each job:

with make_cluster("slurm") as cluster:
    print(*[line for line in cluster.job_script().splitlines() if "#SBATCH" in line], sep="\n")

# %%
# Finally, the scores of both methods (Cohen's kappa). Six subjects are too few to detect a
# difference between the methods.

print(describe_differences(paired_tests(on_dask)))
plotting.subject_dots(on_dask, "kappa", "Cohen's kappa")
# sphinx_gallery_alt = "Cohen's kappa of six subjects: one dot for training from scratch, one for"
# sphinx_gallery_alt = "log band power"
plt.show()

# sphinx_gallery_thumbnail_path = "images/thumbnails/folds_on_dask.png"
