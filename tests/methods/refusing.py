"""What a method refuses in one line."""

from functools import partial

from methods.base import Refusal
from tests.tiebench.refusals import refused

refused = partial(refused, kind=Refusal)
