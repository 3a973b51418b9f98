"""Hash tables, maps, filters and counters on flash, for keys that no longer fit into RAM."""

from __future__ import annotations

import os

from nandex import _nandex
from nandex._errors import *  # noqa: F403
from nandex._errors import __all__ as _errors

os.register_at_fork(after_in_child=_nandex._after_fork)

__version__: str = _nandex.__version__

__all__ = ["__version__", *_errors]
