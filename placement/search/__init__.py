"""Search by simulated annealing. The package can be called: `placement.search(design, …)` is `public.search`."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.search.search import SearchResult


class _SearchPackage(types.ModuleType):
    """A package that is a function, too: importing any module of it would else hide the function of the same name."""

    def __call__(self, *arguments: Any, **options: Any) -> SearchResult:
        """Searches; see `placement.search.public.search`."""
        from placement.search.public import search

        return search(*arguments, **options)


sys.modules[__name__].__class__ = _SearchPackage
