"""Cost terms written in Python, for pools whose steps must be slow or fail."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from unittest import mock

from placement.config import EnvConfig
from placement.engine import cost_terms
from placement.engine.pool import EnvironmentPool, make_pool
from tests.support.designs import Node, NodeKind, build, square_canvas

_Numbers = ctypes.POINTER(ctypes.c_double)
_MAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_EVALUATE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, _Numbers, _Numbers, ctypes.c_void_p)
_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Term(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("make", _MAKE),
        ("evaluate", _EVALUATE),
        ("destroy", _DESTROY),
    )


_KEPT: list[_Term] = []  # the engine stores their addresses


def one_macro_pool(num_envs: int, evaluate: Callable[[float], float], **settings: Any) -> EnvironmentPool:
    """Returns a reset pool of a one-macro design: each action ends an episode and costs `evaluate(x of the macro)`.

    `evaluate` runs in the pool's threads; NaN makes the step fail.
    """
    nodes = [Node("macro", NodeKind.HARD, 15, 15, 10, 10), Node("port", NodeKind.PORT, 0, 0)]
    design = build("one_macro", square_canvas(5, 5), nodes, [])
    term = _Term(
        cost_terms.VERSION, b"of a test", _MAKE(lambda _: 1), _EVALUATE(lambda _, x, y, o: evaluate(x[0])), _DESTROY()
    )
    term.destroy = _DESTROY(lambda _: None)
    _KEPT.append(term)
    loaded = cost_terms.CostTerm("of a test", ctypes.addressof(term), 1.0)
    config = EnvConfig(soft_placer="none", cost_terms=("term.so:1",))
    with mock.patch("placement.engine.pool.load_cost_term", lambda given: loaded):
        pool = make_pool(design, num_envs, config=config, **settings)
    pool.async_reset()
    while pool.in_flight:
        pool.recv(timeout=60.0)
    return pool
