"""What a method was given of the person whose windows it predicts."""

from enum import StrEnum


class Access(StrEnum):
    """What a method was given of the test person, beside the window that it predicts.

    Two scores compare only with the same access, or with less of it for the better one.
    """

    #: Each window is predicted on its own.
    NONE = "none"
    #: The windows so far, in the order of time, without labels.
    CAUSAL = "one window at a time"
    #: All windows, without labels.
    UNLABELLED = "unlabelled windows of the test person"
    #: Some windows with labels.
    LABELLED = "labelled windows of the test person"
