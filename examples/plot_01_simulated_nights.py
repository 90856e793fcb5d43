"""
What a simulated night looks like
=================================

The demo and most tests run on simulated sleep, because it is free to share. It is no model of the
brain; this page shows what it does have in common with a recording from a sleep laboratory.
"""

# %%
# One person, one night, 30-second windows
# ----------------------------------------
#
# ``sleep`` returns an ordinary braindecode dataset of windows, with the person in the description
# and the sleep stage as target.

import matplotlib.pyplot as plt
import numpy as np

from braindecode_pars import as_sklearn, datasets, plotting

windows_ds = datasets.simulated.sleep(n_subjects=1, hours=7, n_chans=2, sfreq=100, random_state=4)
X, y, groups = as_sklearn(windows_ds)
person = 1

# %%
# The hypnogram walks through cycles of about 90 minutes, with deep sleep early and REM sleep late.
# Below it, one window of each stage: alpha in wake, theta in REM and N1, a K-complex or spindles in
# N2, slow waves in N3.

night = np.flatnonzero(groups == person)
windows = np.asarray(X[night])
plotting.night(windows, y[night], datasets.simulated.STAGES, sfreq=100.0)
plt.show()

# %%
# Rhythms wax and wane over tens of seconds, in real nights and in these: that slow order within a
# window is what a pretext task about time can learn from.
