"""The comparison policy: positions matter at every step, padding does not, and the rest of the program takes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.policy.agent import Agent, Params
from placement.policy.graph_inputs import GraphInputs, graph_inputs, stack
from placement.policy.precision import FLOAT32
from placement.policy.stepwise_graph import node_features
from placement.policy.upsampling import MAP_CELLS, Doubling, _places
from placement.ppo.learner import Learner
from placement.training.checkpoint import CheckpointMismatch, Checkpoints
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.episodes import played_episodes
from tests.support.observations import random_observation

CONFIG = PolicyConfig(name="edge_gnn_stepwise", node_width=8, rounds=2)
DESIGNS = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]


@pytest.fixture(scope="module")
def agent() -> Agent:
    return Agent(CONFIG, DESIGNS)


@pytest.fixture(scope="module")
def params(agent: Agent) -> Params:
    """Parameters far from the initial ones, so that nothing is near zero by design."""
    noise = np.random.default_rng(1)
    shapes = jax.eval_shape(agent.init, 0)
    return jax.tree.map(lambda leaf: (0.3 * noise.standard_normal(leaf.shape)).astype(np.float32), shapes)


@cache
def _compiled(agent: Agent):
    network = agent.network
    return jax.jit(lambda params, inputs, seen: network.decide(params, network.embed(params, inputs), inputs, seen))


def decide(agent: Agent, params: Params, seen: Observation, inputs: GraphInputs | None = None) -> tuple:
    result = _compiled(agent)(params, agent.network.inputs if inputs is None else inputs, seen)
    return tuple(np.asarray(value) for value in result)


def test_the_untrained_policy_is_near_uniform(agent: Agent) -> None:
    seen = random_observation(DESIGNS, 0, 8)
    logits, values = decide(agent, agent.init(3), seen)
    legal = seen.mask != 0
    assert (logits[~legal] < -1e8).all()
    assert max(np.ptp(row[ok]) for row, ok in zip(logits, legal, strict=True)) < 0.2
    assert np.abs(values).max() < 0.5


def test_parameters_can_travel(agent: Agent) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(jax.eval_shape(agent.init, 0)):
        assert all(isinstance(key.key, str) for key in path)
        assert leaf.dtype == jnp.float32


def test_where_the_placed_macros_stand_changes_logits_and_value(agent: Agent, params: Params) -> None:
    seen = random_observation(DESIGNS, 2, 4, design=[1] * 4)._replace(step=np.full(4, 4, np.int32))
    seen.x[:], seen.y[:], seen.mask[:] = 0, 0, 1
    seen.x[:, :4], seen.y[:, :4] = 0.25, 0.75
    seen.x[1, 2] = 0.9  # a placed macro elsewhere
    seen.x[2, 6] = 0.9  # a macro that is not placed yet: what stands there means nothing
    logits, values = decide(agent, params, seen)
    assert np.abs(logits[1] - logits[0]).max() > 1e-4
    assert abs(values[1] - values[0]) > 1e-4
    np.testing.assert_array_equal(logits[2], logits[3])


def test_node_features_by_hand() -> None:
    inputs = jax.tree.map(jnp.asarray, stack([graph_inputs(design) for design in DESIGNS]))
    seen = random_observation(DESIGNS, 2, 1, design=[0])._replace(step=np.array([2], np.int32))
    seen.x[0, :3], seen.y[0, :3] = [0.25, 1.0, 0.5], [0.5, 0.0, 0.5]
    features = np.asarray(node_features(inputs, seen, jnp.array([2])))[0]
    # Graph nodes: large 0, middle 1, small 2, kept 3, cluster 4, ports 5 and 6; placing order large, middle, small.
    np.testing.assert_allclose(features[:3, 5:], [[-0.5, 0, 1], [1, -1, 1], [0, 0, 0]])
    np.testing.assert_allclose(features[3, 5:], [0.8, -0.8, 1], atol=1e-6)
    np.testing.assert_array_equal(features[4, 5:], 0)
    np.testing.assert_array_equal(features[7:], 0)
    np.testing.assert_allclose(features[:7, :5], inputs.nodes[0, :7, :5])


def test_more_padding_changes_nothing(agent: Agent, params: Params) -> None:
    seen, wide = (random_observation(DESIGNS, 8, 8, extra=extra) for extra in (0, 5))
    padded = jax.tree.map(
        jnp.asarray, stack([graph_inputs(one) for one in DESIGNS], macros=15, node_bucket=256, edge_bucket=1024)
    )
    more = [(0, 0), (0, 15 - seen.x.shape[1])]
    wide = wide._replace(x=np.pad(wide.x, more), y=np.pad(wide.y, more))
    logits, values = decide(agent, params, seen)
    other, other_values = decide(agent, params, wide, padded)
    rows, columns = logits.shape[1:]
    legal = seen.mask != 0
    np.testing.assert_allclose(other[:, :rows, :columns][legal], logits[legal], rtol=1e-5, atol=1e-5)
    assert (other[:, rows:] < -1e8).all()
    np.testing.assert_allclose(other_values, values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("which", [0, 1])
def test_a_mixed_batch_gives_what_each_design_gives_alone(agent: Agent, params: Params, which: int) -> None:
    """Alone the graph has no axis for samples, and no padding: other code, same numbers."""
    mixed = random_observation(DESIGNS, 7, 8, design=[0, 1] * 4)
    logits, values = decide(agent, params, mixed)
    design = DESIGNS[which]
    rows, columns, macros = design.canvas.rows, design.canvas.columns, len(design.placing_order)
    part = Observation(
        design=np.zeros(4, np.int32),
        step=mixed.step[which::2],
        mask=mixed.mask[which::2, :rows, :columns],
        maps=mixed.maps[which::2, :, :rows, :columns],
        x=mixed.x[which::2, :macros],
        y=mixed.y[which::2, :macros],
    )
    expected, expected_values = decide(Agent(CONFIG, [design]), params, part)
    np.testing.assert_allclose(logits[which::2, :rows, :columns], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(values[which::2], expected_values, rtol=1e-5, atol=1e-5)


def test_a_grid_is_cut_out_of_the_middle_and_a_larger_one_is_stretched() -> None:
    cut, stretched = (
        np.asarray(_places(jnp.array([6, 6, MAP_CELLS]), MAP_CELLS)),
        np.asarray(_places(jnp.array([2 * MAP_CELLS]), 2 * MAP_CELLS)),
    )
    first = (MAP_CELLS - 6) // 2
    np.testing.assert_array_equal(cut[0, :6].argmax(axis=1), np.arange(first, first + 6))
    np.testing.assert_array_equal(cut[2], np.eye(MAP_CELLS))
    np.testing.assert_allclose(stretched[0].sum(axis=1), 1)
    np.testing.assert_allclose(stretched[0, 4:7, 1:4], [[0.25, 0.75, 0], [0, 0.75, 0.25], [0, 0.25, 0.75]])


def test_doubling_is_a_transposed_convolution() -> None:
    layer = Doubling(3, 2, dtype=FLOAT32, rngs=nnx.Rngs(0))
    layer.bias[...] = jnp.array([0.5, -1.0])
    cells = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 4, 3)), jnp.float32)
    expected = jax.lax.conv_transpose(cells, layer.kernel[...], (2, 2), "SAME") + layer.bias[...]
    np.testing.assert_allclose(layer(cells), expected, rtol=1e-5, atol=1e-6)


def test_gradients_reach_every_parameter(agent: Agent, params: Params) -> None:
    seen = random_observation(DESIGNS, 9, 8)

    def loss(params: Params) -> jax.Array:
        logits, values = _compiled(agent)(params, agent.network.inputs, seen)
        return jnp.sum(jnp.where(jnp.asarray(seen.mask) != 0, logits, 0.0) ** 2) + jnp.sum(values**2)

    for path, gradient in jax.tree_util.tree_leaves_with_path(jax.grad(loss)(params)):
        assert np.isfinite(gradient).all(), path
        if "'key'" in str(path) and "'bias'" in str(path):  # adds the same to every score: the softmax drops it
            continue
        assert np.abs(gradient).max() > 0, path


@pytest.mark.slow
def test_it_learns_what_pays() -> None:
    """Probability moves to the rewarded columns, for both designs at once, through actor and learner."""
    designs = [four_macros(), random_design(2, hard=4, soft=3, ports=3, nets=12, canvas=square_canvas(6, 5))]
    config = PolicyConfig(name="edge_gnn_stepwise", node_width=4, rounds=1)
    env, ppo = EnvConfig(soft_placer="none"), PPOConfig(epochs=2, minibatch_size=28, learning_rate=2e-2)
    agent, learner = Agent(config, designs), Learner(config, ppo, env, designs, seed=0)
    paid = []
    for iteration in range(9):
        episodes = played_episodes(designs, 16, iteration, env=env, played_by=(agent, learner.parameters()), bonus=2)
        metrics = learner.update(episodes, iteration=0)
        paid.append([np.mean([one.reward / one.length for one in episodes[which::2]]) for which in range(2)])
        if iteration == 0:
            traces = agent.trace_count, learner.trace_count
    assert metrics["skipped_steps"] == 0
    assert max(paid[0]) < 0.6, paid
    assert min(paid[-1]) > 0.75, paid
    assert (agent.trace_count, learner.trace_count) == traces


def test_a_checkpoint_of_the_other_network_is_refused(tmp_path: Path) -> None:
    shapes = [jax.eval_shape(Agent(config, DESIGNS[:1]).init, 0) for config in (CONFIG, PolicyConfig(node_width=8))]
    stepwise, usual = (jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), tree) for tree in shapes)
    for number, (saved, wanted) in enumerate([(usual, stepwise), (stepwise, usual)]):
        checkpoints = Checkpoints(tmp_path / str(number))
        checkpoints.save(1, {"parameters": saved}, {})
        with pytest.raises(CheckpointMismatch, match=r"of another network or design: lacks \['parameters'\]"):
            checkpoints.restore({"parameters": wanted})
        checkpoints.close()
