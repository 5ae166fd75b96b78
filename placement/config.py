"""The configuration as frozen, validated dataclasses: nothing below the entry points sees a DictConfig.

`configs/*.yaml` hold the defaults that users see; `build` turns the composed mapping into these classes and refuses
unknown keys, wrong types and values out of range, naming the key.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ConfigError(ValueError):
    """A setting is wrong; the message names its key, its value and what would be right."""


def _require(ok: bool, key: str, value: object, right: str) -> None:
    if not ok:
        raise ConfigError(f"{key}={value!r}: must be {right}")


@dataclasses.dataclass(frozen=True)
class CostConfig:
    """Weights of the proxy cost's parts (no unit)."""

    wirelength: float = 1.0
    density: float = 0.5
    congestion: float = 0.5

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            _require(value >= 0, f"env.cost.{field.name}", value, "at least 0")


@dataclasses.dataclass(frozen=True)
class EnvConfig:
    """The placement environment.

    Attributes:
        cost: weights of the reward's parts.
        dead_end_penalty: reward when a macro has no legal cell left (negative).
        soft_placer: how soft macros are placed at an episode's end: an engine placer's name, or `none`.
    """

    cost: CostConfig = CostConfig()
    dead_end_penalty: float = -4.0
    soft_placer: str = "analytic_fast"

    def __post_init__(self) -> None:
        _require(self.dead_end_penalty < 0, "env.dead_end_penalty", self.dead_end_penalty, "below 0")


@dataclasses.dataclass(frozen=True)
class PolicyConfig:
    """Sizes of the network.

    Attributes:
        name: which network.
        node_width: width of node and edge embeddings.
        rounds: rounds of message passing.
        grid_width: channels of the grid decoder.
        location_frequencies: cosines per axis with which a macro's favourite spots are expressed.
        wire_bias, direct_bias, sequential_bias, edge_bias, room_bias: how strongly the untrained policy prefers cells
            that add little wire, lie near the two targets of the netlist's springs, near the canvas edge, and with
            little room around (logits per standard deviation over the legal cells; 0 = uniform; may be negative).
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

    def __post_init__(self) -> None:
        for key in ("node_width", "rounds", "grid_width", "location_frequencies"):
            _require(getattr(self, key) >= 1, f"policy.{key}", getattr(self, key), "at least 1")


@dataclasses.dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation.

    Attributes:
        iterations: how many times episodes are collected and learned from.
        episodes_per_iteration: whole episodes learned from in one iteration, all designs together.
        epochs: passes over an iteration's samples.
        minibatch_size: samples (steps) per gradient step; must be divisible by the number of devices.
        learning_rate: Adam's, at the start.
        final_learning_rate_fraction: its fraction left at the last iteration (linear fall).
        clip: ε of the clipped importance ratio.
        value_coefficient, entropy_coefficient: weights of the value loss and the entropy bonus.
        final_entropy_fraction: fraction of the entropy coefficient left at the last iteration.
        max_gradient_norm: global norm that gradients are clipped to.
        gae_lambda: λ of generalised advantage estimation (discount is 1); 1 = Monte-Carlo returns.
        target_kl: an iteration's remaining epochs are skipped past this approximate KL; 0 = never.
    """

    iterations: int = 50
    episodes_per_iteration: int = 48
    epochs: int = 1
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

    def __post_init__(self) -> None:
        for key in ("iterations", "episodes_per_iteration", "epochs", "minibatch_size"):
            _require(getattr(self, key) >= 1, f"ppo.{key}", getattr(self, key), "at least 1")
        for key in ("learning_rate", "clip", "max_gradient_norm"):
            _require(getattr(self, key) > 0, f"ppo.{key}", getattr(self, key), "above 0")
        for key in ("value_coefficient", "entropy_coefficient", "target_kl"):
            _require(getattr(self, key) >= 0, f"ppo.{key}", getattr(self, key), "at least 0")
        for key in ("gae_lambda", "final_learning_rate_fraction", "final_entropy_fraction"):
            _require(0 <= getattr(self, key) <= 1, f"ppo.{key}", getattr(self, key), "in [0, 1]")


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
        minutes: wall-clock limit of the training, after which it ends as if done; 0 = none.

    The rest is for `ray`:
        address: `local`, a Ray of this run's own on this machine; `auto` or `host:port`, one that runs already.
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
        report_seconds: between two reports of a role.
        poll_seconds: between two questions for newer parameters.
        shard_checkpoint_seconds: between two checkpoints of a shard; 0 = none.
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
    shards: int = 1
    caches: int = 1
    fan_out: int = 16
    bind: str = "127.0.0.1"
    wire_dtype: str = "float32"
    staleness: str = "wait"
    evaluator: bool = False
    start_timeout: float = 180.0
    report_seconds: float = 1.0
    poll_seconds: float = 0.02
    shard_checkpoint_seconds: float = 30.0
    roles: RolesConfig = RolesConfig()

    def __post_init__(self) -> None:
        _require(self.name in ("local", "ray"), "runtime.name", self.name, "local or ray")
        _require(
            self.wire_dtype in ("float32", "bfloat16"), "runtime.wire_dtype", self.wire_dtype, "float32 or bfloat16"
        )
        _require(self.staleness in ("wait", "drop"), "runtime.staleness", self.staleness, "wait or drop")
        _require(self.fan_out >= 2, "runtime.fan_out", self.fan_out, "at least 2")
        for key in ("actors", "envs_per_actor", "checkpoint_every", "shards"):
            _require(getattr(self, key) >= 1, f"runtime.{key}", getattr(self, key), "at least 1")
        for key in ("max_staleness", "evaluate_every", "minutes", "caches", "shard_checkpoint_seconds"):
            _require(getattr(self, key) >= 0, f"runtime.{key}", getattr(self, key), "at least 0")
        for key in ("start_timeout", "report_seconds", "poll_seconds"):
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
    """

    design: tuple[str, ...]
    run_dir: str
    seed: int = 0
    env: EnvConfig = EnvConfig()
    policy: PolicyConfig = PolicyConfig()
    ppo: PPOConfig = PPOConfig()
    replay: ReplayConfig = ReplayConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    def __post_init__(self) -> None:
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
