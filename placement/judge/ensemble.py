"""The trained judge: several networks and a linear function, what they say together, how sure they are; and its file.

Axis legend: B placements of one design, Q parts.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from flax import nnx

from placement.judge.examples import Scaling, view_of
from placement.judge.geometry import PARTS, Viewer
from placement.judge.network import JudgeNetwork, Prediction, View, check_parameters, with_parameters
from placement.netlist.design import Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.flat_design import DAMAGED_NPZ

FORM = 4


class Member(NamedTuple):
    """One network: its weights by name, and its width."""

    parameters: dict[str, np.ndarray]
    width: int

    def predict(self, view: View) -> Prediction:
        """What it says of placements."""
        return _predict(with_parameters(self.width, self.parameters), view)


@nnx.jit
def _predict(network: JudgeNetwork, view: View) -> Prediction:
    return network(view)


class Judgement(NamedTuple):
    """What an ensemble says of placements of one design.

    Attributes:
        wirelength: float64 [B], log of the routed wirelength, up to a number that all share: differences count.
        deviation: float64 [B], of these, as far as it is known.
        overflow: float64 [B], share of the demand above capacity.
    """

    wirelength: np.ndarray
    deviation: np.ndarray
    overflow: np.ndarray


class Ensemble(NamedTuple):
    """A trained judge.

    Attributes:
        members: the networks.
        scaling: of the parts.
        ridge: float64 [Q], the weights of the linear judge of the same data, which counts for half.
        level: of the linear judge, which is fitted to differences within designs.
        factor: the deviation of a prediction over that between the members.
        designs: that it was trained on.
        seed: of the training.
    """

    members: tuple[Member, ...]
    scaling: Scaling
    ridge: np.ndarray
    level: float
    factor: float
    designs: tuple[str, ...]
    seed: int

    @property
    def digest(self) -> str:
        """SHA-256 of the weights."""
        weights = [array for member in self.members for _, array in sorted(member.parameters.items())]
        return hashlib.sha256(
            b"".join(
                np.ascontiguousarray(one).tobytes()
                for one in (*weights, *self.scaling, self.ridge, np.float64(self.level))
            )
        ).hexdigest()

    def judge(self, viewer: Viewer, placements: Sequence[Placement]) -> Judgement:
        """What it says of placements of the viewer's design, their soft macros annealed.

        Raises:
            DesignError: a placement is of another number of nodes, or lacks a macro.
        """
        return self.judge_view(view_of(viewer, viewer.see(placements), self.scaling))

    def levels(self, viewer: Viewer, placements: Sequence[Placement]) -> np.ndarray:
        """float64 [B]: the expected log of the routed wirelength over its design's scale (`Targets`).

        Of a placement it does not depend on the others that are judged with it.

        Raises:
            DesignError: a placement is of another number of nodes, or lacks a macro.
        """
        view = view_of(viewer, viewer.see(placements), self.scaling)
        said = [np.asarray(member.predict(view).wirelength, np.float64) for member in self.members]
        mean: np.ndarray = (np.mean(said, axis=0) + self.linear(view)) / 2
        return mean

    def linear(self, view: View) -> np.ndarray:
        """float64 [B]: the same by the linear judge alone."""
        parts = view.parts.astype(np.float64) * self.scaling.deviation + self.scaling.mean
        linear: np.ndarray = parts @ self.ridge + self.level
        return linear

    def judge_view(self, view: View) -> Judgement:
        """The same of what was seen already."""
        said = [member.predict(view) for member in self.members]
        wirelength = np.stack([centred(one.wirelength) for one in said]).astype(np.float64)
        overflow = np.mean([np.maximum(one.overflow, 0.0) for one in said], axis=0)
        expected = (wirelength.mean(0) + centred(self.linear(view))) / 2
        return Judgement(expected, self.factor * wirelength.std(0), overflow**2)


def centred(values: jax.Array | np.ndarray) -> np.ndarray:
    """[B]: less their mean."""
    array = np.asarray(values)
    return array - array.mean()


def arrays_of(members: Sequence[Member]) -> dict[str, np.ndarray]:
    """The members' weights by number and name, as a file holds them."""
    return {
        f"{number}:{name}": array for number, member in enumerate(members) for name, array in member.parameters.items()
    }


def members_of(widths: Sequence[int], arrays: Mapping[str, np.ndarray]) -> list[Member]:
    """The members that `arrays_of` gave, of these widths; raises ValueError where weights are of another network."""
    members = []
    for number, width in enumerate(widths):
        own = {name.partition(":")[2]: array for name, array in arrays.items() if name.startswith(f"{number}:")}
        check_parameters(width, own)
        members.append(Member(own, width))
    return members


def save(path: Path, ensemble: Ensemble) -> None:
    """Writes a judge to a `.npz` file, whole or not at all; raises OSError."""
    header = {
        "form": FORM,
        "widths": [member.width for member in ensemble.members],
        "level": ensemble.level,
        "factor": ensemble.factor,
        "designs": ensemble.designs,
        "seed": ensemble.seed,
    }
    out = io.BytesIO()
    np.savez_compressed(
        out,
        header=np.frombuffer(json.dumps(header).encode(), np.uint8),
        mean=ensemble.scaling.mean,
        deviation=ensemble.scaling.deviation,
        ridge=ensemble.ridge,
        **arrays_of(ensemble.members),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, out.getvalue())


def read(path: Path) -> Ensemble:
    """The judge in a file that `save` wrote.

    Raises:
        DesignError: the file cannot be read, is damaged, or is of another form.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays["header"].tobytes())
        if header["form"] != FORM:
            raise DesignError(f"is of form {header['form']}; this version reads form {FORM}: train it again")
        members = members_of(header["widths"], arrays)
        numbers = {name: arrays[name] for name in ("mean", "deviation", "ridge")}
        numbers |= {name: np.asarray(header[name], float) for name in ("level", "factor")}
        if not members or any(numbers[name].shape != (len(PARTS),) for name in ("mean", "deviation", "ridge")):
            raise ValueError(f"no network, or not {len(PARTS)} numbers for what it sees")
        if any(not np.isfinite(array).all() for array in (*numbers.values(), *arrays.values())):
            raise ValueError("a number in it is not finite")
        return Ensemble(
            members=tuple(members),
            scaling=Scaling(arrays["mean"], arrays["deviation"]),
            ridge=arrays["ridge"],
            level=float(header["level"]),
            factor=float(header["factor"]),
            designs=tuple(header["designs"]),
            seed=int(header["seed"]),
        )
    except DesignError as error:
        raise DesignError(f"{path}: {error}") from None
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (*DAMAGED_NPZ, TypeError) as error:
        raise DesignError(f"{path}: no judge, or a damaged one: {error}") from None
