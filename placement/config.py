"""The settings as frozen, checked dataclasses; nothing below the commands sees a DictConfig.

Each class has the types, the allowed values, the defaults and, in its docstring, the meanings of its settings; `--help`
and docs/reference/settings.md are made from these. `build` turns a composed mapping into a class and rejects unknown
keys, wrong types and values out of range, naming the key.
"""

import dataclasses
import importlib
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

T = TypeVar("T")


class ConfigError(ValueError):
    """A setting is wrong; the message names its key, its value and the valid values."""


def require(ok: bool, key: str, value: object, right: str) -> None:
    """Raises ConfigError unless `ok`; `right` describes the valid values of `key`."""
    if not ok:
        raise ConfigError(f"{key}={value!r}: must be {right}")


class Rule(NamedTuple):
    """The requirement on a value, in words and as a test; the annotation of a setting."""

    right: str
    allows: Callable[[Any], bool]


def one_of(names: Sequence[str]) -> Rule:
    """The rule that a value is one of `names`."""
    first, last = ", ".join(names[:-1]), names[-1]
    right = f"one of {first}, {last}" if len(names) > 3 else f"{first} or {last}" if first else last
    return Rule(right, lambda value: value in names)


def is_weighted(text: str) -> bool:
    """Whether `text` is a path, a colon and a finite number."""
    path, _, weight = text.rpartition(":")
    try:
        return bool(path) and math.isfinite(float(weight))
    except ValueError:
        return False


def is_import_path_or(name: str) -> Callable[[str], bool]:
    """The test that a value is `name`, or dotted identifiers such as `my_package.my_name`."""
    return lambda value: value == name or ("." in value and all(part.isidentifier() for part in value.split(".")))


def import_object(path: str, *, key: str) -> Any:
    """Imports the object with a path such as `my_package.my_name`; raises ConfigError for `key` if there is none."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{key}={path!r}: cannot be imported ({error}); PYTHONPATH must contain the folder of {module!r}"
        ) from None


Count = Annotated[int, Rule("at least 1", lambda value: value >= 1)]
OrNone = Annotated[int, Rule("at least 0", lambda value: value >= 0)]
Amount = Annotated[float, Rule("at least 0", lambda value: value >= 0)]
Positive = Annotated[float, Rule("above 0", lambda value: value > 0)]
Seconds = Annotated[float, Rule("above 0 seconds", lambda value: value > 0)]
Text = Annotated[str, Rule("text", lambda value: True)]
"""An item of a list that may itself contain commas; for other lists, `key=a,b` is two items."""
Share = Annotated[float, Rule("in [0, 1]", lambda value: 0 <= value <= 1)]
Address = Annotated[str, Rule("an address", bool)]
FanOut = Annotated[int, Rule("at least 2", lambda value: value >= 2)]
Seed = Annotated[int, Rule("an integer in [0, 2³²)", lambda value: 0 <= value < 2**32)]


class Settings:
    """Base of the dataclasses below; checks the rules of its settings when an instance is made."""

    _group: ClassVar[str]

    def __init_subclass__(cls, group: str = "") -> None:
        """`group` is the prefix of the keys in messages."""
        cls._group = group

    def __post_init__(self) -> None:
        _check(self, self._group)


def _check(settings: object, at: str) -> None:
    """Raises ConfigError if a setting breaks its rule, also in nested dataclasses that are not `Settings`."""
    for name, hint in typing.get_type_hints(type(settings), include_extras=True).items():
        value = getattr(settings, name)
        if value is None:
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, Settings):
            _check(value, f"{at}{name}.")
        for rule in _rules(hint):
            for item in value if isinstance(value, tuple) else (value,):
                shown = list(item) if isinstance(item, tuple) else item
                require(rule.allows(item), f"{at}{name}", shown, rule.right)


def _rules(hint: Any) -> Sequence[Rule]:
    """The rules of a setting's value or, for a list, of its items."""
    if typing.get_origin(hint) is Literal:
        return (one_of(typing.get_args(hint)),)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [rule for option in typing.get_args(hint) for rule in _rules(option)]
    if typing.get_origin(hint) is tuple:
        return _rules(typing.get_args(hint)[0])
    return getattr(hint, "__metadata__", ())


COSTS = ("proxy", "chip")  # the names of the costs; docs/explanation/chip-cost.md explains their differences
OWN_WEIGHTS = {"proxy": 0.5, "chip": 1.0}  # the default weight of density and of congestion in each cost


class CostWeights(NamedTuple):
    """The weights of a cost's terms (dimensionless), and the cost's name, one of `COSTS`.

    Example:
        >>> placement.cost(placement.load("toy6"), cost=placement.CostWeights(density=1.0)).total
        1.1166666666666667
    """

    wirelength: float = 1.0
    density: float = 0.5
    congestion: float = 0.5
    name: str = "proxy"
    tidy: float = 0.0


@dataclasses.dataclass(frozen=True)
class CostConfig(Settings, group="env.cost."):
    """The cost and the weights of its terms (dimensionless).

    Attributes:
        name: chip, or the published cost proxy (docs/explanation/chip-cost.md)
        wirelength: weight of the wirelength
        density: weight of the density; null: 1 for the chip cost, 0.5 for the proxy cost
        congestion: weight of the congestion; null: as for density
        tidy: weight of tidiness (docs/explanation/tidiness.md); 0.003 suits the chip cost

    Example:
        >>> placement.CostConfig(name="proxy", density=1.0).weights()
        CostWeights(wirelength=1.0, density=1.0, congestion=0.5, name='proxy', tidy=0.0)
    """

    wirelength: Amount = 1.0
    density: Amount | None = None
    congestion: Amount | None = None
    name: Annotated[str, one_of(COSTS)] = "chip"
    tidy: Amount = 0.0

    def weights(self) -> CostWeights:
        """The weights in the engine's form, with the cost's defaults for those that are not given."""
        own = OWN_WEIGHTS[self.name]
        density = own if self.density is None else self.density
        congestion = own if self.congestion is None else self.congestion
        return CostWeights(self.wirelength, density, congestion, self.name, self.tidy)


EPISODE_SOFT_PLACERS = ("force_directed", "analytic", "analytic_fast", "annealed", "none")
"""The placers of soft macros at the end of an episode: the engine's placers, or none."""
EpisodeSoftPlacer = Annotated[str, one_of(EPISODE_SOFT_PLACERS)]


@dataclasses.dataclass(frozen=True)
class EnvConfig(Settings, group="env."):
    """The placement environment.

    Attributes:
        dead_end_penalty: reward if a macro has no legal cell left; below 0
        cost_terms: libraries with cost terms, each path:weight, subtracted from the reward
            (docs/how-to/own-cost-term.md)
        reward: cost (minus the cost and the cost terms), or the import path of a Python function
            (docs/how-to/own-reward.md)
        soft_placer: algorithm that places the soft macros at the end of an episode: force_directed, analytic,
            analytic_fast, annealed (slower, most accurate for the chip cost) or none
        action_scale: number of action cells along each side of a gcell; 0: as each design's macros require; the cost
            still uses gcells
        off_grid: place a macro anywhere in the cell of its action, abutting other macros if the centre is not free

    Example:
        >>> env = placement.PlacementEnv("toy6", config=placement.EnvConfig(cost=placement.CostConfig(congestion=0.0)))
    """

    cost: CostConfig = CostConfig()
    dead_end_penalty: Annotated[float, Rule("below 0", lambda value: value < 0)] = -4.0
    cost_terms: tuple[Annotated[str, Rule("path:weight", is_weighted)], ...] = ()
    reward: Annotated[str, Rule("cost or the import path of a function", is_import_path_or("cost"))] = "cost"
    soft_placer: EpisodeSoftPlacer = "analytic_fast"
    action_scale: Annotated[int, Rule("in [0, 16]", lambda value: 0 <= value <= 16)] = 1
    off_grid: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        alone = f"empty with env.reward={self.reward}, which replaces the cost"
        require(self.reward == "cost" or not self.cost_terms, "env.cost_terms", list(self.cost_terms), alone)


@dataclasses.dataclass(frozen=True)
class PolicyConfig(Settings, group="policy."):
    """The network. The graph encoder runs once per version of the parameters and design, the grid decoder per step.

    Biases are preferences of the untrained policy, in logits per standard deviation over the legal cells; 0: none.

    Attributes:
        name: edge_gnn, or the import path of a network (docs/how-to/own-policy.md)
        node_width: width of the embeddings of macros
        rounds: rounds of message passing
        grid_width: channels of the grid decoder
        wire_bias: preference for little added wire
        edge_bias: preference for cells near the canvas edge
        whitespace_bias: preference for abutting other macros or the edge
        electrostatic_bias: preference for cells near the macro's position in an electrostatic placement of all macros,
            in logits times log(1 + distance in cells); if not 0, that placement takes seconds per design
        dtype: number type of per-gcell products: float32, bfloat16, or auto (bfloat16 on an accelerator, float32 on
            a CPU)
        location: use the location head
        graph: use the graph encoder
    """

    name: Annotated[str, Rule("edge_gnn or the import path of a class", is_import_path_or("edge_gnn"))] = "edge_gnn"
    node_width: Count = 32
    rounds: Count = 3
    grid_width: Count = 16
    wire_bias: float = 0.0
    edge_bias: float = 0.0
    whitespace_bias: float = 0.0
    electrostatic_bias: float = 0.0
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    location: bool = True
    graph: bool = True


@dataclasses.dataclass(frozen=True)
class PPOConfig(Settings, group="ppo."):
    """Proximal policy optimisation.

    Attributes:
        iterations: iterations of collecting episodes and learning from them
        episodes_per_iteration: whole episodes per iteration, over all designs
        epochs: epochs over the samples of an iteration
        sample_fraction: share of the samples that each epoch uses
        minibatch_size: samples (steps) per gradient step; divisible by the number of devices
        learning_rate: initial learning rate of Adam
        clip: ε of the clipped importance ratio
        entropy_target: initial entropy in nats below which the entropy bonus grows (quadratic decay to 0)
        final_fraction: share of the learning rate and of the least entropy bonus at the last iteration (linear decay)
        max_gradient_norm: global norm that gradients are clipped to
        gae_lambda: λ of generalised advantage estimation (the discount is 1); 1: the return minus the baseline
    """

    iterations: Count = 50
    episodes_per_iteration: Count = 48
    epochs: Count = 1
    sample_fraction: Annotated[float, Rule("above 0 and at most 1", lambda value: 0 < value <= 1)] = 0.5
    minibatch_size: Count = 240
    learning_rate: Positive = 3e-3
    clip: Positive = 0.2
    entropy_target: Amount = 2.0
    final_fraction: Share = 0.1
    max_gradient_norm: Positive = 1.0
    gae_lambda: Share = 0.95


@dataclasses.dataclass(frozen=True)
class ReplayConfig(Settings, group="replay."):
    """The replay between actors and learner.

    Attributes:
        name: reverb, memory, or auto: Reverb if it is installed, else memory
        capacity: maximum number of episodes; writers wait while it is full
        timeout: seconds that the learner waits for episodes before it fails
    """

    name: Literal["auto", "reverb", "memory"] = "auto"
    capacity: Count = 256
    timeout: Seconds = 300.0


@dataclasses.dataclass(frozen=True)
class RoleConfig:
    """Resources that Ray reserves for one process of a role; only learner and evaluator use accelerators.

    Attributes:
        cpus: processors
        gpus: accelerators
        memory_mb: memory limit in MB; a process that exceeds it is restarted; 0: unlimited
    """

    cpus: Amount = 1.0
    gpus: Amount = 0.0
    memory_mb: OrNone = 0


@dataclasses.dataclass(frozen=True)
class RolesConfig:
    """Resources by role."""

    learner: RoleConfig = RoleConfig()
    actor: RoleConfig = RoleConfig()
    shard: RoleConfig = RoleConfig()
    cache: RoleConfig = RoleConfig()
    evaluator: RoleConfig = RoleConfig()


_OF_RAY = ("address", "learners", "shards", "caches", "fan_out", "bind", "staleness", "evaluator", "roles")


@dataclasses.dataclass(frozen=True)
class RuntimeConfig(Settings, group="runtime."):
    """The execution of the roles. The settings from `address` on apply to `runtime=ray` only.

    Attributes:
        name: local: all roles in one process; ray: each role in its own processes, which Ray restarts; accelerator:
            local, with large batches of environments
        actors: actor threads or processes
        envs_per_actor: environments that each actor steps as one batch
        env_threads: threads that step the environments of one actor; 0: an equal share of the cores (Ray: 1)
        inference: local: each actor computes its actions; central: one loop computes the actions of all actors
        max_staleness: versions that an episode may lag behind; 0: actors and learner alternate
        checkpoint_every: iterations between checkpoints
        evaluate_every: iterations between greedy evaluations; 0: only at the end
        minutes: wall-clock limit; 0: none; schedules follow iterations or time, whichever is further ahead
        address: local: a new Ray on this machine; auto or host:port: a running cluster
        learners: learner hosts; shards and episodes_per_iteration must be divisible by it
        shards: replay servers
        caches: model caches between learner and actors; 0: actors read from the learner
        fan_out: caches or readers that one cache serves
        bind: address that servers listen on; node: each node's own address, with a token
        staleness: wait: actors wait at max_staleness; drop: the learner drops older episodes
        evaluator: run evaluations, except the last, in a separate process
    """

    name: Literal["local", "ray"] = "local"
    actors: Count = 1
    envs_per_actor: Count = 16
    env_threads: OrNone = 0
    inference: Literal["local", "central"] = "local"
    max_staleness: OrNone = 0
    checkpoint_every: Count = 10
    evaluate_every: OrNone = 10
    minutes: Amount = 0.0
    address: Address = "local"
    learners: Count = 1
    shards: Count = 1
    caches: OrNone = 1
    fan_out: FanOut = 16
    bind: Address = "127.0.0.1"
    staleness: Literal["wait", "drop"] = "wait"
    evaluator: bool = False
    roles: RolesConfig = RolesConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        hosts = f"the {self.learners} learner hosts (runtime.learners)"
        for name in _OF_RAY if self.name != "ray" else ():
            value, default = getattr(self, name), getattr(type(self), name)
            require(value == default, f"runtime.{name}", value, f"left at {default!r} without runtime=ray")
        require(self.shards % self.learners == 0, "runtime.shards", self.shards, f"divisible by {hosts}")
        require(
            self.inference == "local" or self.name == "local",
            "runtime.inference",
            self.inference,
            "local with runtime=ray, because sending every observation to another process costs more than computing "
            "actions locally; central needs runtime=local or runtime=accelerator",
        )
        require(self.actors >= self.learners, "runtime.actors", self.actors, f"at least one for each of {hosts}")


@dataclasses.dataclass(frozen=True)
class TrackingConfig(Settings, group="tracking."):
    """The tracking service that a run reports to.

    Attributes:
        name: none, mlflow or wandb
        uri: address of the server; null: the library's default (MLFLOW_TRACKING_URI; wandb's service)
        project: experiment (MLflow) or project (Weights & Biases)
    """

    name: Literal["none", "mlflow", "wandb"] = "none"
    uri: Annotated[str, Rule("the address of a server", bool)] | None = None
    project: Annotated[str, Rule("a name", bool)] = "macro-placement"


EPISODES_PER_DESIGN = 4
"""Number of episodes that an actor plays at once with each design drawn from a distribution, to compare them."""
_DISTRIBUTION = "synthetic:"


def drawn_macros(name: str) -> tuple[int, int] | None:
    """Minimum and maximum number of macros of the distribution `synthetic:MIN-MAX`; None for the name of a design.

    Raises ConfigError if the name starts like a distribution's, but is not valid.
    """
    if not name.startswith(_DISTRIBUTION):
        return None
    low, separator, high = name.removeprefix(_DISTRIBUTION).partition("-")
    is_range = bool(separator) and low.isdecimal() and high.isdecimal() and 1 <= int(low) <= int(high)
    require(is_range, "design", name, "synthetic:MIN-MAX, numbers of macros, such as synthetic:20-60")
    return int(low), int(high)


@dataclasses.dataclass(frozen=True)
class TrainConfig(Settings):
    """A training run.

    Attributes:
        design: a name in netlists/ or on PLACEMENT_PATH, a path to a .pb.txt[.gz], or a list of them: 'design=[a,b]';
            synthetic:20-60: a new synthetic design of 20 to 60 macros every four episodes
        run_dir: the run folder; null: runs/<design>/<seed and a hash of the settings>; s3:// and gs:// addresses:
            docs/how-to/object-storage.md
        seed: random seed
        initial_policy: run folder with the initial parameters; base: the shipped policy; null: fresh parameters
        flips: at the end, mirror macros of the best placement if that lowers the cost, and save the result
    """

    design: tuple[str, ...]
    run_dir: Annotated[str, Rule("a folder", bool)]
    seed: Seed = 0
    initial_policy: str | None = None
    flips: bool = True
    env: EnvConfig = EnvConfig()
    policy: PolicyConfig = PolicyConfig()
    ppo: PPOConfig = PPOConfig()
    replay: ReplayConfig = ReplayConfig()
    runtime: RuntimeConfig = RuntimeConfig()
    tracking: TrackingConfig = TrackingConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.design) >= 1, "design", self.design, "the name or path of at least one design")
        if self.runtime.name == "ray":
            require(self.replay.name != "memory", "replay.name", self.replay.name, "auto or reverb with runtime=ray")
        if any(map(drawn_macros, self.design)):
            self._check_drawn()

    @property
    def drawn(self) -> tuple[int, int] | None:
        """Minimum and maximum number of macros if designs are drawn from a distribution; None for named designs."""
        return drawn_macros(self.design[0])

    def _check_drawn(self) -> None:
        """Raises ConfigError unless designs that are drawn from a distribution can be trained on."""
        name = next(filter(drawn_macros, self.design))
        require(len(self.design) == 1, "design", list(self.design), "one distribution alone, or names of designs")
        require(self.runtime.name == "local", "runtime", self.runtime.name, f"local with design={name}")
        require(self.runtime.inference == "local", "runtime.inference", "central", f"local with design={name}")
        for key, count in (
            ("runtime.envs_per_actor", self.runtime.envs_per_actor),
            ("ppo.episodes_per_iteration", self.ppo.episodes_per_iteration),
        ):
            each = f"divisible by {EPISODES_PER_DESIGN}, the episodes of each design, with design={name}"
            require(count % EPISODES_PER_DESIGN == 0, key, count, each)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seeded(Settings):
    """Random numbers.

    Attributes:
        seed: random seed
    """

    seed: Seed = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputSettings(Settings):
    """Overwriting of existing output.

    Attributes:
        force: overwrite existing output; other files in a design's folder are kept
    """

    force: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class GivenPlacement(Settings):
    """The placement of these commands.

    Attributes:
        placement: .plc or .def file; null: the design's own placement
    """

    placement: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class DesignSettings(Settings):
    """The design of every command except `train`.

    Attributes:
        design: a built-in design's name, a name on PLACEMENT_PATH, a folder, or the path of a .pb.txt[.gz]
        initial: .plc file with the canvas; null: the given placement, or the design's initial.plc
    """

    design: str | None = None
    initial: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_given()

    def _check_given(self) -> None:
        """Raises ConfigError if neither a design nor a checkpoint is given."""
        if self.design is None and getattr(self, "checkpoint", None) is None:
            raise ConfigError("design: is required: a name, or the path of a .pb.txt or .pb.txt.gz file")


def build(cls: type[T], values: Mapping[str, Any], at: str = "") -> T:
    """Builds an instance of the config dataclass `cls` from a plain mapping; raises ConfigError naming the key.

    Args:
        cls: one of this module's dataclasses.
        values: nested mapping of plain values, like the result of `OmegaConf.to_container`.
        at: the dotted key of `values`, for messages.
    """
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ConfigError(f"{at}{key}: unknown setting; the settings are {', '.join(sorted(fields))}")
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING:
            raise ConfigError(f"{at}{name}: is required")
    return cls(**{key: _convert(hints[key], value, f"{at}{key}") for key, value in values.items()})


def _convert(hint: Any, value: Any, key: str) -> Any:
    """Converts `value` to the annotated type `hint`, without guessing (no string becomes a number)."""
    if dataclasses.is_dataclass(hint):
        if isinstance(value, str) and hasattr(hint, "name"):  # `cost=chip` sets the name, and keeps the weights.
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key}={value!r}: must be a group of settings")
        return build(typing.cast(type, hint), value, f"{key}.")
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        hint = str
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
