"""`placement.search`: a search that can be called with little."""

from __future__ import annotations

from placement.annealing.config import AnnealConfig, Budget
from placement.annealing.search import SearchResult
from placement.annealing.search import search as search_from
from placement.annealing.starts import Start, legal
from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights
from placement.netlist.design import Design, Placement
from placement.netlist.load import load


def search(
    design: Design | str,
    *,
    seconds: float = 60.0,
    moves: int | None = None,
    start: Placement | None = None,
    config: AnnealConfig | None = None,
    weights: CostWeights = DEFAULT_WEIGHTS,
    threads: int = 1,
    seed: int = 0,
) -> SearchResult:
    """The best placement that simulated annealing finds on the exact cost.

    Args:
        design: a design, or the name or path of one.
        seconds: CPU seconds of each thread.
        moves: moves of each thread, instead of `seconds`: the result then depends on the arguments only.
        start: a placement to improve, made legal first; None: the search makes its own starts.
        config: how it anneals; None: the defaults.
        weights: of the cost's components.
        threads: annealers, a thread each.
        seed: of everything random, at least 0.

    Example:
        >>> found = placement.search("toy6", moves=2000)
        >>> found.costs.total < placement.cost(placement.load("toy6")).total
        True

    Raises:
        DesignError: the design cannot be used, or no legal placement was found.
        ConfigError: seconds or moves is not above 0.
    """
    loaded = load(design) if isinstance(design, str) else design
    config = AnnealConfig() if config is None else config
    budget = Budget(seconds=seconds) if moves is None else Budget(moves=moves)
    starts = () if start is None else (Start("given", legal(loaded, start, config)),)
    return search_from(loaded, starts, config=config, budget=budget, weights=weights, threads=threads, seed=seed)
