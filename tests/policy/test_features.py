"""The springs' energy given the placed macros: step by step, whole episodes, and all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig
from placement.engine.observation import Observation
from placement.engine.state import EpisodeRenderer
from placement.episode import stack_episodes
from placement.netlist.design import Design
from placement.policy.agent import Agent, Params
from placement.policy.features import (
    cell_features,
    episode_energies,
    grid_features,
    next_energy,
    situation,
    spring_energy,
)
from placement.policy.inputs import GraphInputs, graph_inputs, stack
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.episodes import played_episodes
from tests.support.jaxprs import equations
from tests.support.observations import random_observation

DESIGNS = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]


def _slow(inputs: GraphInputs, seen: Observation) -> np.ndarray:
    """Computes sample by sample and macro by macro, float64 [B, 2]."""
    result = np.zeros((len(seen.step), 2))
    for sample, (design, step) in enumerate(zip(seen.design, seen.step, strict=True)):
        places = np.stack((seen.x[sample], seen.y[sample]), axis=1).astype(float)
        scale = inputs.stiffness[design, 1].sum() / 6
        for macro in range(min(step, inputs.macros[design])):
            target = inputs.target_weights[design, 1, macro] @ places + inputs.target_fixed[design, 1, macro]
            result[sample] += inputs.stiffness[design, 1, macro] * (places[macro] - target) ** 2 / scale
    return result


@pytest.fixture(params=["one design", "two designs"])
def designs(request: pytest.FixtureRequest) -> list[Design]:
    return DESIGNS[1:] if request.param == "one design" else DESIGNS


def test_all_methods_agree(designs: list[Design]) -> None:
    inputs = stack([graph_inputs(design) for design in designs])
    device = jax.tree.map(jax.numpy.asarray, inputs)
    batch = stack_episodes(played_episodes(designs, 6, 0, env=EnvConfig(soft_placer="none")))
    seen, lengths = EpisodeRenderer(designs).render(batch.design, batch.actions, batch.length), batch.length
    whole = np.asarray(episode_energies(device, seen, lengths))
    before = np.full((len(lengths), 2), 9.0, np.float32)
    for step in range(seen.step.shape[1]):
        now = Observation(*(array[:, step] for array in seen))
        inside = step < lengths
        expected = _slow(inputs, now)[inside]
        before = np.asarray(next_energy(device, now, before))
        np.testing.assert_allclose(spring_energy(device, now)[inside], expected, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(before[inside], expected, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(whole[inside, step], expected, rtol=2e-5, atol=1e-6)


def test_a_step_looks_at_no_pair_of_macros_for_every_sample() -> None:
    """No array of a decision has the samples' axis together with the designs', or with that of the macros twice."""
    small = PolicyConfig(node_width=4, rounds=1, grid_width=4)
    largest = random_design(2, hard=23, soft=3, ports=4, nets=30, canvas=square_canvas(9, 7))
    agent = Agent(small, [*DESIGNS * 6, largest])
    inputs, params, samples, designs = agent.network.inputs, agent.init(0), 37, 13
    macros = inputs.size.shape[1]
    seen, before = random_observation(DESIGNS, 0, samples), np.zeros((samples, 2), np.float32)
    padding = ((0, 0), (0, macros - seen.x.shape[1]))
    seen = seen._replace(x=np.pad(seen.x, padding), y=np.pad(seen.y, padding))

    def decide(params: Params, inputs: GraphInputs, seen: Observation, before: np.ndarray) -> jax.Array:
        energy = next_energy(inputs, seen, before)
        return agent.network.decide(params, agent.network.embed(params, inputs), inputs, seen, energy)

    shapes = [
        shape for shape in _shapes(jax.make_jaxpr(decide)(params, inputs, seen, before).jaxpr) if samples in shape
    ]
    assert shapes
    assert not [shape for shape in shapes if designs in shape or shape.count(macros) > 1]


def test_a_cells_features_are_those_of_the_grid_at_the_cell(designs: list[Design]) -> None:
    network = Agent(PolicyConfig(), designs).network
    seen = random_observation(designs, 3, 8)
    cells = seen.mask.reshape(8, -1).argmax(axis=1).astype(np.int32)

    @jax.jit
    def both(inputs: GraphInputs, seen: Observation) -> Any:
        here = situation(inputs, seen)
        return cell_features(seen, here, PolicyConfig(), cells), grid_features(seen, here, PolicyConfig())

    (found, state), features = both(network.inputs, seen)
    shown = np.concatenate((features.priors, features.channels[:, 13:20], seen.maps[:, 2:]), axis=1)
    expected = shown.reshape(8, shown.shape[1], -1)[np.arange(8), :, cells]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(state, features.globals)


def test_the_least_wirelength_is_that_of_the_legal_cells(designs: list[Design]) -> None:
    network, seen = Agent(PolicyConfig(), designs).network, random_observation(designs, 4, 6)
    seen.mask[2] = 0
    found = grid_features(seen, situation(network.inputs, seen), PolicyConfig()).globals[:, 5]
    wires = [wire[mask != 0] for wire, mask in zip(seen.maps[:, 2], seen.mask, strict=True)]
    np.testing.assert_array_equal(found, [wire.min() if len(wire) else 0 for wire in wires])


def _shapes(jaxpr: Any) -> Iterator[tuple[int, ...]]:
    return (made.aval.shape for line in equations(jaxpr) for made in line.outvars)
