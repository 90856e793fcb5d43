"""Data of a study: labeled windows of any source as plain tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from braindecode_pars.evaluation import confounds
from braindecode_pars.windows import Windows, amplitudes, convert, labels

#: Maximum number of windows that are read per recording.
_MAX_READ_PER_RECORDING = 8
#: Approximate maximum number of windows that are read over all recordings.
_MAX_READ = 2000


@dataclass(frozen=True, eq=False)
class StudyData:
    """Windows of a study, with tables of the recordings and of the labeled windows.

    Attributes
    ----------
    windows : Windows
        All windows. Samples are read when they are needed.
    recordings : DataFrame
        One row per recording: ``name``, ``subject``, ``corpus``, ``channels``, ``date``, ``file``,
        ``site``, ``recorded_sfreq``, ``recorded_reference`` and ``recorded_channels``. Unknown
        values are None.
    labeled : DataFrame
        One row per labeled window: ``window`` (its index), ``recording``, ``start``, ``subject``
        and ``class``.
    """

    windows: Windows
    recordings: pd.DataFrame
    labeled: pd.DataFrame

    @classmethod
    def of(cls, windows_ds: Any) -> Self:
        """Convert labeled windows of any source, without reading samples.

        Parameters
        ----------
        windows_ds : BaseConcatDataset | StudyData
            Labeled windows, or any other source of windows that the estimators accept. The label
            -1 means unlabeled, unless a class name is assigned to -1.

        Returns
        -------
        StudyData
        """
        if isinstance(windows_ds, cls):
            return windows_ds
        windows = convert.as_windows(windows_ds)
        parts = getattr(windows_ds, "datasets", ())
        recordings = confounds.properties_of_recordings(windows, parts)
        return cls(windows, recordings, confounds.labeled_windows(windows, recordings))

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of their labels."""
        return list(self.labeled["class"].cat.categories)

    @cached_property
    def by_subject(self) -> bool:
        """Whether at least 90 % of the labeled subjects have one class, such as a diagnosis."""
        classes = self.labeled["class"]
        return classes.nunique() > 1 and labels.one_class_each(classes, self.labeled["subject"])

    @cached_property
    def has_one_class_per_recording(self) -> bool:
        """Whether every labeled recording has one class."""
        return confounds.has_one_class_per_recording(self.labeled)

    @cached_property
    def sampled(self) -> pd.DataFrame:
        """Amplitudes of windows at equal intervals, for each recording and class.

        The samples of these windows are read. The columns are the columns of ``labeled``, and:

        - ``log_amplitude``: decimal logarithm of the median amplitude (standard deviation) over
          channels.
        - ``channel_log_amplitudes``: log amplitude of each channel, from
          :func:`~braindecode_pars.windows.amplitudes.log_amplitudes_of`.
        """
        chosen = []
        n_classes = self.labeled.groupby("recording")["class"].nunique()
        n_max = min(_MAX_READ_PER_RECORDING, _MAX_READ // max(1, len(n_classes)))
        for (recording, _), rows in self.labeled.groupby(["recording", "class"], observed=True):
            n = max(2, n_max // n_classes[recording])
            chosen.append(rows.iloc[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))])
        rows = pd.concat(chosen) if chosen else self.labeled
        # Only one window is in memory at a time.
        of_channels = [
            amplitudes.log_amplitudes_of(self.windows[i].astype(float))
            for i in rows["window"].tolist()
        ]
        log_amplitudes = [np.log10(pd.Series(10 ** values[0]).median()) for values in of_channels]
        return rows.assign(
            log_amplitude=np.array(log_amplitudes, float),
            channel_log_amplitudes=pd.Series(of_channels, rows.index, object),
        )
