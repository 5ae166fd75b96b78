"""The network through its agent: distribution, masks, padding, mixed designs, compilations."""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.netlist.design import Design
from placement.policy.agent import Agent, Params, drawn
from placement.policy.edge_gnn import REGIONS, GridDecoder, prior_weights, region_weights
from placement.policy.features import GridFeatures
from placement.policy.inputs import GraphInputs, graph_inputs, stack
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.observations import random_observation

CONFIG = PolicyConfig(node_width=8, rounds=2, grid_width=8)


@pytest.fixture(scope="module")
def designs() -> list[Design]:
    return [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]


@pytest.fixture(scope="module")
def agent(designs: list[Design]) -> Agent:
    return Agent(CONFIG, designs)


@pytest.fixture(scope="module")
def params(agent: Agent) -> Params:
    """Returns parameters far from the initial ones, so that nothing is near zero by design."""
    params = agent.init(0)
    leaves, tree = jax.tree.flatten(params)
    noise = np.random.default_rng(1)
    noisy = [leaf + 0.2 * noise.standard_normal(leaf.shape).astype(np.float32) for leaf in leaves]
    return jax.tree.unflatten(tree, noisy)


def _logits(agent: Agent, params: Params, observation: Observation) -> np.ndarray:
    return np.asarray(_decide(agent, params, agent.network.inputs, observation))


@partial(jax.jit, static_argnums=0)
def _decide(agent: Agent, params: Params, inputs: GraphInputs, observation: Observation) -> jax.Array:
    return agent.network.decide(params, agent.network.embed(params, inputs), inputs, observation)


def test_untrained_policy_is_near_uniform_over_the_legal_cells(agent: Agent, designs: list[Design]) -> None:
    observation = random_observation(designs, 0, 8)
    logits = _logits(agent, agent.init(3), observation)
    probabilities = np.asarray(jax.nn.softmax(logits.reshape(8, -1)))
    legal = observation.mask.reshape(8, -1) != 0
    assert (probabilities[~legal] == 0).all()
    spread = [row[ok].max() / row[ok].min() for row, ok in zip(probabilities, legal, strict=True)]
    assert max(spread) < 1.5


def test_biases_lean_on_wire_mask_and_target(agent: Agent, designs: list[Design]) -> None:
    params = agent.init(0)
    observation = random_observation(designs, 0, 8)
    leaning = {**params, "prior": {**params["prior"], "bias": jnp.array([3.0, 0.0, 0.0, 0.0, 0.0])}}
    logits = _logits(agent, leaning, observation)
    for row in range(8):
        legal = observation.mask[row] != 0
        assert np.corrcoef(logits[row][legal], -observation.maps[row, 2][legal])[0, 1] > 0.95
    first = random_observation(designs, 2, 8, design=[1] * 8)._replace(step=np.zeros(8, np.int32))
    first.x[:], first.y[:], first.mask[:] = 0, 0, 1
    drawn_there = {**params, "prior": {**params["prior"], "bias": jnp.array([0.0, 0.0, 3.0, 0.0, 0.0])}}
    logits = _logits(agent, drawn_there, first)
    row, column = np.unravel_index(logits[0].argmax(), logits[0].shape)
    target = agent.network.inputs.target_fixed[1, 1, 0]
    assert abs((column + 0.5) / 9 - target[0]) <= 1 / 9
    assert abs((row + 0.5) / 7 - target[1]) <= 1 / 7


def test_room_and_edge_lead_to_corners_and_neighbours(agent: Agent, designs: list[Design]) -> None:
    params = agent.init(0)
    first = random_observation(designs, 2, 8, design=[1] * 8)._replace(step=np.zeros(8, np.int32))
    first.x[:], first.y[:], first.mask[:] = 0, 0, 1
    packed = {**params, "prior": {**params["prior"], "bias": jnp.array([0.0, 0.0, 0.0, 0.0, 3.0])}}
    logits = _logits(agent, packed, first)
    assert np.unravel_index(logits[0].argmax(), logits[0].shape) in {(0, 0), (0, 8), (6, 0), (6, 8)}
    edged = {**params, "prior": {**params["prior"], "bias": jnp.array([0.0, 0.0, 0.0, 3.0, 0.0])}}
    logits = _logits(agent, edged, first)
    assert logits[0][1:-1, 1:-1].max() < min(logits[0][0].min(), logits[0][:, 0].min())


def test_the_electrostatic_bias_leads_to_the_electrostatic_place_and_falls_with_the_distance() -> None:
    design = random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))
    agent = Agent(dataclasses.replace(CONFIG, electrostatic_bias=2.0), [design])
    params = agent.init(0)
    assert params["prior"]["bias"].tolist() == [0.0] * 5 + [2.0]
    place = np.array([[[4.5 / 9, 1.5 / 7]] + [[0.5, 0.5]] * 8], np.float32)  # the first: centre of row 1, column 4
    inputs = agent.network.inputs._replace(electrostatic=jnp.asarray(place))
    first = random_observation([design], 2, 8, design=[0] * 8)._replace(step=np.zeros(8, np.int32))
    first.x[:], first.y[:], first.mask[:] = 0, 0, 1
    logits = np.asarray(_decide(agent, params, inputs, first))[0]
    assert np.unravel_index(logits.argmax(), logits.shape) == (1, 4)
    # Distances in units of the side of a square with a cell's area.
    width, height = design.canvas.width / 9, design.canvas.height / 7
    away = np.abs(np.arange(9) - 4) * width / np.sqrt(width * height)
    np.testing.assert_allclose(logits[1] - logits[1, 4], -2 * np.log1p(away), atol=0.1)
    nowhere = inputs._replace(electrostatic=jnp.full_like(inputs.electrostatic, jnp.nan))
    logits = _decide(agent, params, nowhere, first)
    assert np.ptp(np.asarray(logits)[0]) < 0.2


def test_the_configured_biases_are_the_initial_ones() -> None:
    config = PolicyConfig(wire_bias=1.5, edge_bias=0.5, whitespace_bias=3.0)
    initial = prior_weights(config)(jax.random.key(0), (5,), jnp.float32)
    np.testing.assert_array_equal(initial, [1.5, 0.0, 0.0, 0.5, 3.0])


def test_log_probabilities_are_exact_and_actions_legal(agent: Agent, params: Params, designs: list[Design]) -> None:
    observation = random_observation(designs, 4, 8)
    embeddings = agent.embed(params)
    logits = _logits(agent, params, observation)
    reference = np.asarray(jax.nn.log_softmax(jnp.asarray(logits.reshape(8, -1))))
    for temperature, greedy in ((1.0, False), (1e9, False), (1.0, True)):
        decision = agent.act(params, embeddings, observation, jax.random.key(0), greedy=greedy, temperature=temperature)
        assert decision.actions.dtype == np.int32
        assert observation.mask.reshape(8, -1)[np.arange(8), decision.actions].all()
        np.testing.assert_allclose(decision.log_probabilities, reference[np.arange(8), decision.actions], atol=1e-5)
    np.testing.assert_array_equal(decision.actions, reference.argmax(axis=1))


def test_sampling_follows_the_distribution(agent: Agent, params: Params, designs: list[Design]) -> None:
    one = random_observation(designs, 5, 1, design=[0])
    many = Observation(*(np.repeat(value, 8, axis=0) for value in one))
    embeddings = agent.embed(params)
    drawn = [agent.act(params, embeddings, many, jax.random.key(seed)).actions for seed in range(400)]
    logits = _logits(agent, params, many)
    expected = np.asarray(jax.nn.softmax(logits[0].reshape(-1)))
    counted = np.bincount(np.concatenate(drawn), minlength=len(expected)) / 3200
    assert np.abs(counted - expected).max() < 5 * np.sqrt(expected.max() / 3200)


def test_a_cell_is_found_in_the_cumulative_probabilities() -> None:
    """Chances 0.1, 0.2, illegal, 0.4, illegal, 0.3 of six cells in two rows."""
    chances, legal = np.array([0.1, 0.2, 0, 0.4, 0, 0.3]), np.array([1, 1, 0, 1, 0, 1], np.bool_)
    logits = np.where(legal, np.log(np.maximum(chances, 1e-9)), -1e9).astype(np.float32)
    uniform = np.array([0, 0.09, 0.11, 0.29, 0.31, 0.69, 0.71, 0.999], np.float32)
    many = jnp.tile(jnp.asarray(logits).reshape(1, 2, 3), (8, 1, 1))
    allowed = jnp.tile(jnp.asarray(legal).reshape(1, 2, 3), (8, 1, 1))
    found = drawn(many, allowed, jnp.asarray(uniform), jnp.float32(1))
    np.testing.assert_array_equal(found, [0, 0, 1, 1, 3, 3, 5, 5])
    np.testing.assert_array_equal(drawn(many, allowed, None, jnp.float32(1)), [3] * 8)
    even = drawn(many, allowed, jnp.asarray(uniform), jnp.float32(1e9))  # 0.25 each
    np.testing.assert_array_equal(even, [0, 0, 0, 1, 1, 3, 3, 5])
    never = jnp.zeros_like(allowed)
    np.testing.assert_array_equal(
        drawn(jnp.full_like(many, -1e9), never, jnp.asarray(uniform), jnp.float32(1)), [0] * 8
    )


@pytest.mark.parametrize("grids", [[(5, 7)], [(5, 7), (4, 3)]])
def test_regions_are_bilinear_means_of_the_cells(grids: list[tuple[int, int]]) -> None:
    """Compared with a table of every cell's weight in every region."""
    rows, columns = np.max(grids, axis=0)
    table = np.zeros((len(grids), REGIONS, REGIONS, rows, columns))
    for grid, (height, width) in enumerate(grids):
        for row, column in np.ndindex(height, width):
            up, across = (
                np.maximum(
                    1 - np.abs(np.clip((index + 0.5) / size * REGIONS - 0.5, 0, REGIONS - 1) - np.arange(REGIONS)), 0
                )
                for index, size in ((row, height), (column, width))
            )
            table[grid, :, :, row, column] = np.outer(up, across)
    table = table.reshape(len(grids), REGIONS**2, -1)
    sizes = np.array(grids, np.float32)
    centres = [(np.arange(most) + 0.5) / sizes[:, axis, None] for axis, most in enumerate((rows, columns))]
    used = (centres[0] < 1)[:, :, None] & (centres[1] < 1)[:, None]
    up_place, across_place, valid = (jnp.asarray(array, jnp.float32) for array in (*centres, used))
    nothing = jnp.zeros(())
    weights = region_weights(GridFeatures(nothing, valid, nothing, across_place, up_place, nothing))
    decoder, hidden = GridDecoder(3, 2, rngs=nnx.Rngs(0)), np.random.default_rng(0).random((2, 2, rows * columns))
    means = np.einsum("bwn,bqn->bwq", hidden, table * np.ones((2, 1, 1))) / np.maximum(table.sum(axis=2), 1e-6)[:, None]
    np.testing.assert_allclose(decoder._regions(jnp.asarray(hidden, jnp.float32), weights), means, rtol=1e-5, atol=1e-6)
    spread = np.einsum("bwq,bqn->bwn", means, table * np.ones((2, 1, 1)))
    found = decoder._spread(jnp.asarray(means, jnp.float32), weights)
    np.testing.assert_allclose(found, spread, rtol=1e-5, atol=1e-6)


def test_ended_episodes_are_harmless(agent: Agent, params: Params, designs: list[Design]) -> None:
    observation = random_observation(designs, 6, 8, design=[0, 1] * 4)
    observation.mask[:2] = 0
    observation.step[0] = 3
    decision = agent.act(params, agent.embed(params), observation, jax.random.key(0))
    assert np.isfinite(decision.log_probabilities).all()
    assert observation.mask.reshape(8, -1)[np.arange(2, 8), decision.actions[2:]].all()


def test_a_mixed_batch_gives_what_each_design_gives_alone(agent: Agent, params: Params, designs: list[Design]) -> None:
    mixed = random_observation(designs, 7, 8, design=[0, 1] * 4)
    logits = _logits(agent, params, mixed)
    alone = Agent(CONFIG, designs[:1])  # the smaller one: padded in the mixed batch, not alone
    rows, columns, macros = designs[0].canvas.rows, designs[0].canvas.columns, len(designs[0].placing_order)
    part = Observation(
        design=np.zeros(4, np.int32),
        step=mixed.step[::2],
        mask=mixed.mask[::2, :rows, :columns],
        maps=mixed.maps[::2, :, :rows, :columns],
        x=mixed.x[::2, :macros],
        y=mixed.y[::2, :macros],
    )
    expected = _logits(alone, params, part)
    np.testing.assert_allclose(logits[::2, :rows, :columns], expected, rtol=0, atol=1e-5)


def test_more_padding_changes_nothing(agent: Agent, params: Params, designs: list[Design]) -> None:
    observation = random_observation(designs, 8, 8)
    wide = random_observation(designs, 8, 8, extra=5)
    np.testing.assert_array_equal(wide.x, observation.x)
    padded = jax.tree.map(jnp.asarray, stack([graph_inputs(design) for design in designs], macros=15))
    more = [(0, 0), (0, 15 - observation.x.shape[1])]
    wide = wide._replace(x=np.pad(wide.x, more), y=np.pad(wide.y, more))
    logits = _logits(agent, params, observation)
    other = _decide(agent, params, padded, wide)
    rows, columns = logits.shape[1:]
    probabilities, others = (
        np.asarray(jax.nn.softmax(jnp.asarray(value).reshape(8, -1)).reshape(value.shape)) for value in (logits, other)
    )
    np.testing.assert_allclose(others[:, :rows, :columns], probabilities, rtol=0, atol=1e-6)


def test_same_seed_same_parameters_and_string_keys(agent: Agent) -> None:
    one, two, other = agent.init(0), agent.init(0), agent.init(1)
    jax.tree.map(np.testing.assert_array_equal, one, two)
    assert not np.array_equal(one["context_hidden"]["kernel"], other["context_hidden"]["kernel"])
    for path, leaf in jax.tree_util.tree_leaves_with_path(one):
        assert all(isinstance(key.key, str) for key in path)
        assert leaf.dtype == jnp.float32


def test_compiles_once_per_batch_shape(agent: Agent, designs: list[Design], params: Params) -> None:
    def play(seeds: range) -> int:
        for seed in seeds:
            for batch in (8, 1):
                observation = random_observation(designs, seed, batch)
                embeddings = agent.embed(params)
                agent.act(params, embeddings, observation, jax.random.key(seed), temperature=1.0 + seed)
        return agent.trace_count

    traces = play(range(1))
    assert traces >= 3
    assert play(range(1, 4)) == traces


def test_an_observation_of_other_designs_is_rejected(agent: Agent, params: Params, designs: list[Design]) -> None:
    observation = random_observation(designs[:1], 0, 2)
    with pytest.raises(ValueError, match="same designs"):
        agent.act(params, agent.embed(params), observation, jax.random.key(0))


def test_gradients_reach_every_parameter(agent: Agent, params: Params, designs: list[Design]) -> None:
    observation = random_observation(designs, 9, 8)

    def loss(params: Params) -> jax.Array:
        logits = _decide(agent, params, agent.network.inputs, observation)
        return jnp.sum(jnp.where(jnp.asarray(observation.mask) != 0, logits, 0.0) ** 2)

    for path, gradient in jax.tree_util.tree_leaves_with_path(jax.grad(loss)(params)):
        assert np.isfinite(gradient).all(), path
        assert np.abs(gradient).max() > 0, path
