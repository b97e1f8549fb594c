"""What is refused in one line."""

from contextlib import contextmanager

import pytest


@contextmanager
def refused(*words, pattern=None, kind=ValueError):
    """Inside, an error of this kind comes whose one line holds these words and matches the pattern."""
    with pytest.raises(kind, match=pattern) as caught:
        yield caught
    line = str(caught.value)
    assert line and "\n" not in line and not [word for word in words if word not in line], line
