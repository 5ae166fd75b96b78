"""The configuration as frozen, validated dataclasses: nothing below the entry points sees a DictConfig.

`configs/*.yaml` hold the defaults that users see; `build` turns the composed mapping into these classes and refuses
unknown keys, wrong types and values out of range, naming the key.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
NETWORKS = ("edge_gnn", "edge_gnn_stepwise")
DTYPES = ("auto", "float32", "bfloat16")
_GRID_SETTINGS = (
    *("wire_mask", "maps", "pulls", "location"),
    *("wire_bias", "direct_bias", "sequential_bias", "edge_bias", "room_bias"),
)


class ConfigError(ValueError):
    """A setting is wrong; the message names its key, its value and what would be right."""


def _require(ok: bool, key: str, value: object, right: str) -> None:
    if not ok:
        raise ConfigError(f"{key}={value!r}: must be {right}")


class CostWeights(NamedTuple):
    """The weight of each part in the proxy cost (no unit).

    Example:
        >>> placement.proxy_cost(placement.load("toy6"), weights=placement.CostWeights(density=1.0)).proxy_cost
        1.1166666666666667
    """

    wirelength: float = 1.0
    density: float = 0.5
    congestion: float = 0.5


@dataclasses.dataclass(frozen=True)
class CostConfig:
    """Weights of the proxy cost's parts (no unit).

    Example:
        >>> placement.CostConfig(density=1.0).weights()
        CostWeights(wirelength=1.0, density=1.0, congestion=0.5)
    """

    wirelength: float = 1.0
    density: float = 0.5
    congestion: float = 0.5

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            _require(value >= 0, f"env.cost.{field.name}", value, "at least 0")

    def weights(self) -> CostWeights:
        """The weights as the engine takes them."""
        return CostWeights(self.wirelength, self.density, self.congestion)


@dataclasses.dataclass(frozen=True)
class EnvConfig:
    """The placement environment.

    Attributes:
        cost: weights of the reward's parts.
        dead_end_penalty: reward when a macro has no legal cell left (negative).
        soft_placer: how soft macros are placed at an episode's end: an engine placer's name, or `none`.
        order: in which order macros are placed: `area`, the largest first; `connected`, always the one that is joined
            most strongly to what is placed.

    Example:
        >>> env = placement.PlacementEnv("toy6", config=placement.EnvConfig(cost=placement.CostConfig(congestion=0.0)))
    """

    cost: CostConfig = CostConfig()
    dead_end_penalty: float = -4.0
    soft_placer: str = "analytic_fast"
    order: str = "area"

    def __post_init__(self) -> None:
        _require(self.order in ("area", "connected"), "env.order", self.order, "area or connected")
        _require(self.dead_end_penalty < 0, "env.dead_end_penalty", self.dead_end_penalty, "below 0")


@dataclasses.dataclass(frozen=True)
class PolicyConfig:
    """The network: which one, its sizes, and what it is shown.

    Attributes:
        name: `edge_gnn`, whose graph encoder runs once per parameters and design, or `edge_gnn_stepwise`, the published
            recipe's form to compare with: its graph network runs at every step.
        node_width: width of node and edge embeddings.
        rounds: rounds of message passing.
        grid_width: channels of the grid decoder.
        location_frequencies: cosines per axis with which a macro's favourite spots are expressed.
        wire_bias, direct_bias, sequential_bias, edge_bias, room_bias: how strongly the untrained policy prefers cells
            that add little wire, lie near the two targets of the netlist's springs, near the canvas edge, and with
            little room around (logits per standard deviation over the legal cells; 0 = uniform; may be negative).
        dtype: of the products made for every cell: `float32`, `bfloat16`, or `auto` (bfloat16 on an accelerator,
            float32 on a CPU). Parameters, logits, softmax and value are float32 in any case.

    The rest takes something away, or puts back a weakness of the published recipe, to see what it is worth:
        wire_mask: whether the wire mask and the guide made of it are shown.
        maps: whether occupancy and density are shown; without them, legality and geometry.
        pulls: whether anything of the netlist's springs is shown: targets, stiffness, energy, places at rest.
        location: whether there is a location head.
        graph: whether the graph network's embeddings are used; without them, zeros.
        floor: added to every cell's probability before illegal cells are ruled out and the rest is renormalised.
        mask_padding: whether padded nodes and edges are kept out of the graph network's means; if not, what a design
            looks like depends on the designs that it is trained beside.
    """

    name: str = "edge_gnn"
    node_width: int = 32
    rounds: int = 3
    grid_width: int = 16
    location_frequencies: int = 8
    wire_bias: float = 0.0
    direct_bias: float = 0.0
    sequential_bias: float = 0.0
    edge_bias: float = 0.0
    room_bias: float = 0.0
    dtype: str = "auto"
    wire_mask: bool = True
    maps: bool = True
    pulls: bool = True
    location: bool = True
    graph: bool = True
    floor: float = 0.0
    mask_padding: bool = True

    def __post_init__(self) -> None:
        _require(self.name in NETWORKS, "policy.name", self.name, " or ".join(NETWORKS))
        for key in ("node_width", "rounds", "grid_width", "location_frequencies"):
            _require(getattr(self, key) >= 1, f"policy.{key}", getattr(self, key), "at least 1")
        _require(self.dtype in DTYPES, "policy.dtype", self.dtype, ", ".join(DTYPES))
        _require(0 <= self.floor < 1, "policy.floor", self.floor, "in [0, 1)")
        if self.name == "edge_gnn_stepwise":
            for key in _GRID_SETTINGS:
                default = getattr(type(self), key)
                right = f"left at {default!r} with policy=edge_gnn_stepwise, which is not shown the grid's maps"
                _require(getattr(self, key) == default, f"policy.{key}", getattr(self, key), right)


@dataclasses.dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation.

    Attributes:
        iterations: how many times episodes are collected and learned from.
        episodes_per_iteration: whole episodes learned from in one iteration, all designs together.
        epochs: passes over an iteration's samples.
        sample_fraction: of an iteration's samples, how many an epoch draws; below 1, the learner takes less time.
        minibatch_size: samples (steps) per gradient step; must be divisible by the number of devices.
        learning_rate: Adam's, at the start.
        final_learning_rate_fraction: its fraction left at the last iteration (linear fall).
        clip: ε of the clipped importance ratio.
        value_coefficient, entropy_coefficient: weights of the value loss and the entropy bonus.
        final_entropy_fraction: fraction of the entropy coefficient left at the last iteration.
        max_gradient_norm: global norm that gradients are clipped to.
        gae_lambda: λ of generalised advantage estimation (discount is 1); 1 = Monte-Carlo returns.
        target_kl: an iteration's remaining epochs are skipped past this approximate KL; 0 = never.
        advantage_normalisation: over which steps advantages get mean 0 and deviation 1: `design`, those of an
            iteration and a design; `minibatch`; `none`.
        reward_normalisation: `design`, by the running mean and deviation of the design's rewards; `none`.
        baseline: what is taken off the returns: `value`, the value head's prediction; `none`.
        learn_dead_ends: whether episodes that ended without a legal cell teach, too.
        shaping: potential-based: how much of the wirelength cost that a step adds is paid at that step already, and
            given back at the end; 0 = all rewards at the end.
        self_imitation: weight of imitating the best episodes so far; 0 = not done.
        elites: best episodes kept of each design, for that.
        imitated_episodes: of those, how many are imitated in one iteration.
        max_skipped_steps: training ends with an error once so many gradient steps in a row were skipped because loss
            or gradient was not finite.
    """

    iterations: int = 50
    episodes_per_iteration: int = 48
    epochs: int = 1
    sample_fraction: float = 0.5
    minibatch_size: int = 240
    learning_rate: float = 3e-3
    final_learning_rate_fraction: float = 0.1
    clip: float = 0.2
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    final_entropy_fraction: float = 0.1
    max_gradient_norm: float = 1.0
    gae_lambda: float = 1.0
    target_kl: float = 0.0
    advantage_normalisation: str = "design"
    reward_normalisation: str = "design"
    baseline: str = "value"
    learn_dead_ends: bool = True
    shaping: float = 0.0
    self_imitation: float = 0.0
    elites: int = 16
    imitated_episodes: int = 8
    max_skipped_steps: int = 20

    def __post_init__(self) -> None:
        for key, names in (
            ("advantage_normalisation", ("design", "minibatch", "none")),
            ("reward_normalisation", ("design", "none")),
            ("baseline", ("value", "none")),
        ):
            _require(getattr(self, key) in names, f"ppo.{key}", getattr(self, key), f"one of {', '.join(names)}")
        counts = ("iterations", "episodes_per_iteration", "epochs", "minibatch_size", "elites", "imitated_episodes")
        for key in (*counts, "max_skipped_steps"):
            _require(getattr(self, key) >= 1, f"ppo.{key}", getattr(self, key), "at least 1")
        for key in ("learning_rate", "clip", "max_gradient_norm"):
            _require(getattr(self, key) > 0, f"ppo.{key}", getattr(self, key), "above 0")
        _require(0 < self.sample_fraction <= 1, "ppo.sample_fraction", self.sample_fraction, "above 0 and at most 1")
        for key in ("value_coefficient", "entropy_coefficient", "target_kl", "shaping", "self_imitation"):
            _require(getattr(self, key) >= 0, f"ppo.{key}", getattr(self, key), "at least 0")
        for key in ("gae_lambda", "final_learning_rate_fraction", "final_entropy_fraction"):
            _require(0 <= getattr(self, key) <= 1, f"ppo.{key}", getattr(self, key), "in [0, 1]")


@dataclasses.dataclass(frozen=True)
class ExpertConfig:
    """Search that improves the policy's best episodes, to be imitated; needs `ppo.self_imitation` above 0.

    Attributes:
        every: iterations between two times; 0 = never.
        placements: best episodes of each design that are improved each time.
        moves: of the search for each.
    """

    every: int = 0
    placements: int = 2
    moves: int = 100_000

    def __post_init__(self) -> None:
        _require(self.every >= 0, "expert.every", self.every, "at least 0")
        for key in ("placements", "moves"):
            _require(getattr(self, key) >= 1, f"expert.{key}", getattr(self, key), "at least 1")


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Between actors and learner.

    Attributes:
        name: `auto` (Reverb where it is installed, else memory), `reverb` or `memory`.
        capacity: episodes held at most; writers wait when it is full.
        timeout: seconds that the learner may wait for episodes before it fails with an error that says for whom.
    """

    name: str = "auto"
    capacity: int = 256
    timeout: float = 300.0

    def __post_init__(self) -> None:
        _require(self.name in ("auto", "reverb", "memory"), "replay.name", self.name, "auto, reverb or memory")
        _require(self.capacity >= 1, "replay.capacity", self.capacity, "at least 1")
        _require(self.timeout > 0, "replay.timeout", self.timeout, "above 0 seconds")


@dataclasses.dataclass(frozen=True)
class RoleConfig:
    """What one process of a role may take; for `runtime=ray`.

    Attributes:
        cpus, gpus: that Ray sets aside for it. Actors, caches and shards stay off accelerators whatever this says.
        memory_mb: resident memory past which the process is ended and started anew; 0 = unbounded.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    memory_mb: int = 0


@dataclasses.dataclass(frozen=True)
class RolesConfig:
    """Resources by role."""

    learner: RoleConfig = RoleConfig()
    actor: RoleConfig = RoleConfig()
    shard: RoleConfig = RoleConfig()
    cache: RoleConfig = RoleConfig()
    evaluator: RoleConfig = RoleConfig()

    def __post_init__(self) -> None:
        for role in dataclasses.fields(self):
            for field in dataclasses.fields(RoleConfig):
                value = getattr(getattr(self, role.name), field.name)
                _require(value >= 0, f"runtime.roles.{role.name}.{field.name}", value, "at least 0")


@dataclasses.dataclass(frozen=True)
class RuntimeConfig:
    """How the roles run.

    Attributes:
        name: `local`, every role in one process; `ray`, processes of their own on a Ray cluster.
        actors: actor threads (local) or processes (ray).
        envs_per_actor: environments that each actor steps as one batch.
        max_staleness: versions that the parameters an episode was drawn with may lag behind the learner's: 0 = actors
            and learner take turns, 1 = actors collect for the next iteration while the learner learns.
        checkpoint_every: iterations between checkpoints.
        evaluate_every: iterations between greedy evaluations; 0 = only at the end.
        minutes: wall-clock limit of the training, after which it ends as if done; 0 = none. Learning rate and entropy
            bonus fall with the iterations or with the time, whichever is ahead.

    The rest is for `ray`:
        address: `local`, a Ray of this run's own on this machine; `auto` or `host:port`, one that runs already.
        learners: learner hosts that act as one; each reads its own share of the shards.
        shards: replay servers.
        caches: model caches between the learner and the actors; 0 = actors read from the learner's own.
        fan_out: caches or readers that a cache serves.
        bind: the address that shards and caches listen on: loopback; `node`, the node's own as Ray knows it, so that
            other machines reach it; or an address.
        wire_dtype: of the parameters on the wire: `float32` or `bfloat16`.
        staleness: `wait`, actors wait for newer parameters rather than break `max_staleness`; `drop`, actors never
            wait and the learner drops episodes that are too old.
        evaluator: whether evaluations, save the last one, have a process of their own.
        start_timeout: seconds within which every role must have started.
        heartbeat_seconds: between two heartbeats of a process.
        poll_seconds: between two questions for newer parameters.
        shard_checkpoint_seconds: between two checkpoints of a shard; 0 = none.
        shard_silence_seconds: a shard that takes connections, but has answered nothing for so long, counts as down.
        roles: resources of each role's processes.
    """

    name: str = "local"
    actors: int = 1
    envs_per_actor: int = 16
    max_staleness: int = 0
    checkpoint_every: int = 10
    evaluate_every: int = 10
    minutes: float = 0.0
    address: str = "local"
    learners: int = 1
    shards: int = 1
    caches: int = 1
    fan_out: int = 16
    bind: str = "127.0.0.1"
    wire_dtype: str = "float32"
    staleness: str = "wait"
    evaluator: bool = False
    start_timeout: float = 300.0
    heartbeat_seconds: float = 1.0
    poll_seconds: float = 0.02
    shard_checkpoint_seconds: float = 30.0
    shard_silence_seconds: float = 30.0
    roles: RolesConfig = RolesConfig()

    def __post_init__(self) -> None:
        _require(self.name in ("local", "ray"), "runtime.name", self.name, "local or ray")
        _require(
            self.wire_dtype in ("float32", "bfloat16"), "runtime.wire_dtype", self.wire_dtype, "float32 or bfloat16"
        )
        _require(self.staleness in ("wait", "drop"), "runtime.staleness", self.staleness, "wait or drop")
        _require(self.fan_out >= 2, "runtime.fan_out", self.fan_out, "at least 2")
        for key in ("actors", "envs_per_actor", "checkpoint_every", "learners", "shards"):
            _require(getattr(self, key) >= 1, f"runtime.{key}", getattr(self, key), "at least 1")
        hosts = f"the {self.learners} learner hosts (runtime.learners)"
        _require(self.learners == 1 or self.name == "ray", "runtime.learners", self.learners, "1 unless runtime=ray")
        _require(self.shards % self.learners == 0, "runtime.shards", self.shards, f"divisible by {hosts}")
        _require(self.actors >= self.learners, "runtime.actors", self.actors, f"at least one for each of {hosts}")
        for key in ("max_staleness", "evaluate_every", "minutes", "caches", "shard_checkpoint_seconds"):
            _require(getattr(self, key) >= 0, f"runtime.{key}", getattr(self, key), "at least 0")
        for key in ("start_timeout", "heartbeat_seconds", "poll_seconds", "shard_silence_seconds"):
            _require(getattr(self, key) > 0, f"runtime.{key}", getattr(self, key), "above 0 seconds")
        for key in ("address", "bind"):
            _require(bool(getattr(self, key)), f"runtime.{key}", getattr(self, key), "an address")


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """All of a training run.

    Attributes:
        design: names or paths of the designs trained on.
        seed: the root of all randomness.
        run_dir: where everything is written; a run found there is resumed.
        initial_policy: the folder of a run whose newest parameters this one begins with (fine-tuning); None: fresh
            ones. A run that is resumed does not read it again.
        flips: at the end, mirror the best placement's macros where that is cheaper, too, and save that beside it.
    """

    design: tuple[str, ...]
    run_dir: str
    seed: int = 0
    initial_policy: str | None = None
    flips: bool = True
    env: EnvConfig = EnvConfig()
    policy: PolicyConfig = PolicyConfig()
    ppo: PPOConfig = PPOConfig()
    replay: ReplayConfig = ReplayConfig()
    runtime: RuntimeConfig = RuntimeConfig()
    expert: ExpertConfig = ExpertConfig()

    def __post_init__(self) -> None:
        _require(
            not self.expert.every or self.ppo.self_imitation > 0,
            "ppo.self_imitation",
            self.ppo.self_imitation,
            "above 0 with expert.every, or nothing would learn from the expert",
        )
        _require(len(self.design) >= 1, "design", self.design, "the name or path of at least one design")
        _require(0 <= self.seed < 2**32, "seed", self.seed, "an integer in [0, 2³²)")
        _require(bool(self.run_dir), "run_dir", self.run_dir, "a folder")
        if self.runtime.name == "ray":
            _require(self.replay.name != "memory", "replay.name", self.replay.name, "auto or reverb with runtime=ray")


def build(cls: type[T], values: Mapping[str, Any], at: str = "") -> T:
    """An instance of the config dataclass `cls` from a plain mapping; raises ConfigError naming the key.

    Args:
        cls: one of this module's dataclasses.
        values: nested mapping of plain values, as `OmegaConf.to_container` gives it.
        at: the dotted key that `values` stands at, for messages.
    """
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ConfigError(f"{at}{key}: no such setting; there are {', '.join(sorted(fields))}")
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING:
            raise ConfigError(f"{at}{name}: is required")
    return cls(**{key: _convert(hints[key], value, f"{at}{key}") for key, value in values.items()})


def _convert(hint: Any, value: Any, key: str) -> Any:
    """`value` as the annotated type `hint`, without guessing (no string becomes a number)."""
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key}={value!r}: must be a group of settings")
        return build(typing.cast(type, hint), value, f"{key}.")
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        return _convert(next(option for option in options if option is not type(None)), value, key)
    if origin is tuple:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)):
            raise ConfigError(f"{key}={value!r}: must be a list")
        return tuple(_convert(options[0], item, f"{key}[{index}]") for index, item in enumerate(items))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{key}={value!r}: must be of type {hint.__name__}")
    if hint is float and value != value:
        raise ConfigError(f"{key}={value!r}: must be a number")
    return value
