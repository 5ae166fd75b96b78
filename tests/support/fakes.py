"""Fakes of the network and its learner with the same interfaces: instant, deterministic, and easy to check.

Axis legend: B environments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.episode import Episode
from placement.netlist.design import Design
from placement.policy.agent import Decision, EmbeddedParameters, Request
from placement.ppo.learner import Hosts


class FakeAgent:
    """Draws uniformly among the legal cells; the greedy action is the first one.

    Its log-probabilities are minus the parameters' version.

    Parameters are ``{"version": int32 []}``.
    """

    def __init__(self, config: PolicyConfig | None = None, designs: Sequence[Design] = ()) -> None:
        self.embedded: list[int] = []

    def init(self, seed: int) -> dict[str, np.ndarray]:
        """Returns parameters of version 0."""
        return {"version": np.array(0, np.int32)}

    def on(self, inputs: Any) -> FakeAgent:
        """Returns itself because it reads no design."""
        return self

    def embed(self, params: dict[str, np.ndarray]) -> int:
        """Returns the version, which `act` compares with its parameters."""
        self.embedded.append(int(params["version"]))
        return self.embedded[-1]

    def act(
        self,
        params: dict[str, np.ndarray],
        embeddings: int,
        observation: Observation,
        key: Any,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
        energy: Any = None,
    ) -> Decision:
        """Returns one legal action per environment."""
        if embeddings != int(params["version"]):
            raise ValueError(f"embeddings of version {embeddings} with parameters of version {params['version']}")
        mask = np.array(observation.mask).reshape(len(observation.mask), -1) != 0
        generator = np.random.default_rng(np.asarray(key if isinstance(key, np.ndarray) else jax.random.key_data(key)))
        score = -np.arange(mask.shape[1])[None] if greedy else generator.random(mask.shape)
        actions = np.where(mask, score, -np.inf).argmax(axis=1).astype(np.int32)
        return Decision(actions, np.full(len(mask), -embeddings, np.float32))

    def act_together(
        self, network: EmbeddedParameters, requests: Sequence[Request], *, greedy: bool = False, temperature: float = 1
    ) -> list[Decision]:
        """Calls `act` for each request."""
        return [self.act(*network, one.observation, one.key, greedy=greedy) for one in requests]


class FakeLearner:
    """Counts iterations. Its state holds a random key from which it draws at every update, as a real one does.

    Attributes:
        state: pytree of arrays: `updates`, `episodes`, `key`.
        seen: the identities of the episodes learned from since it was made.
    """

    def __init__(
        self,
        policy: PolicyConfig | None = None,
        ppo: PPOConfig | None = None,
        env: EnvConfig | None = None,
        designs: Sequence[Design] = (),
        *,
        seed: int = 0,
        mesh: Any = None,
        hosts: Hosts | None = None,
    ) -> None:
        self.state: dict[str, Any] = {
            "updates": np.array(0, np.int32),
            "episodes": np.array(0, np.int32),
            "key": np.asarray(jax.random.PRNGKey(seed)),
        }
        self.seen: list[tuple[int, int]] = []
        self.hosts = hosts or Hosts()
        self.alone = self.hosts.count == 1

    def prepare(self, episodes: Sequence[Episode]) -> list[Episode]:
        """Returns all hosts' episodes."""
        return self.hosts.exchange(list(episodes))

    def episodes(self, prepared: Sequence[Episode]) -> list[Episode]:
        """Returns the episodes themselves."""
        return list(prepared)

    def buffer(self, episodes: int) -> list[Any]:
        """Returns an empty buffer because nothing is rendered."""
        return []

    def render(self, episodes: Sequence[Episode], buffer: list[Any], *, at: int = 0) -> None:
        """Does nothing."""

    def load(self, episodes: Sequence[Episode], buffer: list[Any]) -> Sequence[Episode]:
        """Returns the episodes themselves."""
        return list(episodes)

    def learn(self, episodes: Sequence[Episode], *, iteration: int, elapsed: float = 0.0) -> dict[str, float]:
        """Learns nothing from whole episodes; raises ValueError if the iterations do not follow each other."""
        if iteration != self.state["updates"]:
            raise ValueError(f"iteration {iteration} after {self.state['updates']} updates")
        self.seen += [(int(episode.identity[0]), int(episode.identity[1])) for episode in episodes]
        key, drawn = jax.random.split(self.state["key"])
        self.state = {
            "updates": np.array(iteration + 1, np.int32),
            "episodes": self.state["episodes"] + np.int32(len(episodes)),
            "key": key,
        }
        return {"loss": float(jax.random.uniform(drawn))}

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the parameters of a `FakeAgent`."""
        return {"version": self.state["updates"]}

    def begin_with(self, params: dict[str, np.ndarray]) -> None:
        """Ignores initial parameters."""


class Silent:
    """A `TrainingProgress` that shows nothing and records its messages.

    Attributes:
        rows, notes: reported so far.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.notes: list[str] = []

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def iteration(self, row: Mapping[str, float]) -> None:
        """Records the end of an iteration."""
        self.rows.append(dict(row))

    def note(self, text: str) -> None:
        """Records a message."""
        self.notes.append(text)

    def processes(self, table: object) -> None:
        """Ignores the table of processes."""
