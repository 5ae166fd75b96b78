"""Settings that take something away: it has no effect any more, and has one otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.config import ConfigError, PolicyConfig, build
from placement.engine.observation import Observation
from placement.policy.agent import Network, Params
from placement.policy.distribution import masked_logits
from placement.policy.graph_inputs import AT_REST, IN_ORDER, GraphInputs, graph_inputs, stack
from placement.policy.policy import _RANK_WAVES
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.observations import random_observation

SMALL = PolicyConfig(node_width=4, rounds=1, grid_width=4, location_frequencies=3)
STEPWISE = PolicyConfig(name="edge_gnn_stepwise", node_width=4, rounds=1)
DESIGNS = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]
OBSERVATION = random_observation(DESIGNS, 3, 4, design=[0, 1, 0, 1])
Change = Callable[[Params, GraphInputs, Observation], tuple[Params, GraphInputs, Observation]]


def decide(
    config: PolicyConfig, params: Params, inputs: GraphInputs, observation: Observation
) -> tuple[np.ndarray, np.ndarray]:
    logits, values = _decide(config)(params, inputs, observation)
    return np.asarray(logits), np.asarray(values)


@cache
def _decide(config: PolicyConfig) -> Callable:
    network = _network(config)
    return jax.jit(lambda params, inputs, seen: network.decide(params, network.embed(params, inputs), inputs, seen))


@cache
def _network(config: PolicyConfig) -> Network:
    return Network(config, DESIGNS)


@cache
def parameters(name: str) -> Params:
    """Far from the initial ones, so that nothing is near zero by design."""
    shapes = jax.eval_shape(_network(SMALL if name == SMALL.name else STEPWISE).init, 0)
    noise = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: (0.3 * noise.standard_normal(leaf.shape)).astype(np.float32), shapes)


def other_maps(kinds: list[int]) -> Change:
    def change(params: Params, inputs: GraphInputs, seen: Observation) -> tuple[Params, GraphInputs, Observation]:
        maps = seen.maps.copy()
        maps[:, kinds] = np.random.default_rng(7).random(maps[:, kinds].shape)
        return params, inputs, seen._replace(maps=maps)

    return change


def other_springs(params: Params, inputs: GraphInputs, seen: Observation) -> tuple[Params, GraphInputs, Observation]:
    changed = {name: 0.3 + 2 * getattr(inputs, name) for name in ("pull", "pull_fixed", "stiffness")}
    return params, inputs._replace(nodes=inputs.nodes.at[..., AT_REST].add(1.0), **changed), seen


def other_location(params: Params, inputs: GraphInputs, seen: Observation) -> tuple[Params, GraphInputs, Observation]:
    kernel = jnp.asarray(params["location"]["kernel"])
    return {**params, "location": {"kernel": kernel + 1}}, inputs, seen


def other_graph(params: Params, inputs: GraphInputs, seen: Observation) -> tuple[Params, GraphInputs, Observation]:
    return params, inputs._replace(nodes=inputs.nodes + 0.5, edge_weight=2 * inputs.edge_weight), seen


def other_order(params: Params, inputs: GraphInputs, seen: Observation) -> tuple[Params, GraphInputs, Observation]:
    """The waves are of the network's own making: only what they are made of, and the weights that read them, change."""
    kernel = jnp.asarray(params["context_hidden"]["kernel"])
    waves = slice(3 * SMALL.node_width, 3 * SMALL.node_width + 2 * _RANK_WAVES + 1)
    changed = {**params, "context_hidden": {**params["context_hidden"], "kernel": kernel.at[waves].add(1.0)}}
    return changed, inputs._replace(nodes=inputs.nodes.at[..., IN_ORDER].add(0.5)), seen


def more_padding(params: Params, inputs: GraphInputs, seen: Observation) -> tuple[Params, GraphInputs, Observation]:
    padded = stack([graph_inputs(design) for design in DESIGNS], node_bucket=128, edge_bucket=1024)
    return params, jax.tree.map(jnp.asarray, padded), seen


CASES = [
    ("wire_mask", SMALL, other_maps([2])),
    ("maps", SMALL, other_maps([0, 1])),
    ("pulls", SMALL, other_springs),
    ("location", SMALL, other_location),
    ("graph", SMALL, other_graph),
    ("rank", SMALL, other_order),
    ("graph", STEPWISE, other_graph),
]


def _effect(config: PolicyConfig, change: Change) -> float:
    """The most that a change moves any logit or value."""
    start = parameters(config.name), _network(config).inputs, OBSERVATION
    before, after = decide(config, *start), decide(config, *change(*start))
    legal = OBSERVATION.mask != 0
    return max(np.abs(before[0] - after[0])[legal].max(), np.abs(before[1] - after[1]).max())


@pytest.mark.parametrize(("key", "config", "change"), CASES, ids=[f"{case[1].name}-{case[0]}" for case in CASES])
def test_what_is_switched_off_has_no_effect(key: str, config: PolicyConfig, change: Change) -> None:
    assert _effect(config, change) > 1e-3
    assert _effect(dataclasses.replace(config, **{key: False}), change) == 0


@pytest.mark.parametrize("config", [SMALL, STEPWISE], ids=lambda config: config.name)
def test_padding_leaks_only_where_it_is_not_masked(config: PolicyConfig) -> None:
    assert _effect(config, more_padding) < 1e-5
    assert _effect(dataclasses.replace(config, mask_padding=False), more_padding) > 1e-3


def test_switches_keep_the_networks_shape() -> None:
    off = dataclasses.replace(SMALL, wire_mask=False, maps=False, pulls=False, location=False, graph=False, rank=False)
    off = dataclasses.replace(off, floor=0.1)
    shapes = [jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(_network(one).init, 0)) for one in (SMALL, off)]
    assert shapes[0] == shapes[1]


def test_everything_off_still_learns_from_legality() -> None:
    off = dataclasses.replace(SMALL, wire_mask=False, maps=False, pulls=False, location=False, graph=False, rank=False)
    logits, values = decide(off, parameters(off.name), _network(off).inputs, OBSERVATION)
    assert np.isfinite(values).all()
    assert np.ptp(logits[0][OBSERVATION.mask[0] != 0]) > 1e-3


def test_the_floor_is_added_before_the_mask() -> None:
    """By hand: three cells, the likeliest of which is illegal, and one of padding."""
    logits = jnp.log(jnp.array([[[0.9, 0.06, 0.04, 1e6]]]))
    valid, legal = jnp.array([[[1, 1, 1, 0]]]), jnp.array([[[False, True, True, False]]])
    plain, floored = (
        np.asarray(jax.nn.softmax(masked_logits(logits, valid, legal, floor=floor)[0, 0])) for floor in (0.0, 0.02)
    )
    np.testing.assert_allclose(plain, [0, 0.6, 0.4, 0], rtol=1e-5)
    np.testing.assert_allclose(floored, [0, 0.08 / 0.14, 0.06 / 0.14, 0], rtol=1e-5)


@pytest.mark.parametrize("config", [SMALL, STEPWISE], ids=lambda config: config.name)
def test_a_networks_floor_flattens_its_distribution(config: PolicyConfig) -> None:
    start = parameters(config.name), _network(config).inputs, OBSERVATION
    plain, floored = (decide(dataclasses.replace(config, floor=floor), *start)[0] for floor in (0.0, 0.5))
    legal = OBSERVATION.mask != 0
    assert (floored[~legal] == plain[~legal]).all()
    for row in range(len(legal)):
        assert np.ptp(floored[row][legal[row]]) < 0.9 * np.ptp(plain[row][legal[row]])
        cell = [np.flatnonzero(legal[row])[logits[row][legal[row]].argmax()] for logits in (plain, floored)]
        assert cell[0] == cell[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "gnn"}, r"policy\.name='gnn': must be edge_gnn or edge_gnn_stepwise"),
        ({"floor": 1.0}, r"policy\.floor=1\.0: must be in \[0, 1\)"),
        ({"dtype": "float16"}, r"policy\.dtype='float16': must be auto, float32 or bfloat16"),
        ({"maps": 0}, r"maps=0: must be of type bool"),
        ({"name": "edge_gnn_stepwise", "maps": False}, r"policy\.maps=False: must be left at True .*edge_gnn_stepwise"),
        ({"name": "edge_gnn_stepwise", "wire_bias": 2.0}, r"policy\.wire_bias=2\.0: must be left at 0\.0"),
    ],
)
def test_wrong_settings_are_refused(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(PolicyConfig, values)
