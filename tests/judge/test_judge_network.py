"""The judge's network: what must change nothing, what its parts compute, and its loss by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from placement.engine.costs import proxy_cost
from placement.flat import from_clusters
from placement.flat.routing import route_estimate
from placement.judge import geometry
from placement.judge.ensemble import Ensemble, Member, read, save
from placement.judge.estimate import Estimator
from placement.judge.examples import Scaling, Targets, view_of
from placement.judge.geometry import CELLS, PARTS, Viewer, resized
from placement.judge.losses import TEMPERATURE, pair_loss
from placement.judge.made_designs import make_design
from placement.judge.network import JudgeNetwork, box_means, parameters_of, with_parameters
from placement.judge.recipes import make_placement, recipes
from placement.judge.training import ROWS, held_out, some_of, turned
from placement.netlist.design import Canvas, Design
from placement.netlist.errors import DesignError
from placement.search.settle import settle_for_check, settle_soft_macros

SCALING = Scaling(np.zeros(len(PARTS), np.float32), np.ones(len(PARTS), np.float32))


@pytest.fixture(scope="module")
def design():
    return make_design("made", seed=5, cells=(300, 400), macros=(4, 6)).design


@pytest.fixture(scope="module")
def placements(design):
    made = [make_placement(design, recipe, moves=1000) for recipe in recipes(4, seed=1)]
    return [settle_soft_macros(design, one, weights=Viewer.CHIP, moves=20_000) for one in made]


def network(seed=0):
    """One whose last layers are not 0, as at the beginning of training."""
    made = JudgeNetwork(8, rngs=nnx.Rngs(seed))
    generator = np.random.default_rng(seed)
    return with_parameters(
        8,
        {name: generator.normal(0, 0.2, array.shape).astype(np.float32) for name, array in parameters_of(made).items()},
    )


def seen(design, placements):
    viewer = Viewer(design)
    return view_of(viewer, viewer.see(placements), SCALING)


def test_maps_hold_what_macros_cover(design, placements):
    viewer = Viewer(design)
    geometry = viewer.see(placements)
    netlist, canvas = design.netlist, design.canvas
    macros = (netlist.width * netlist.height)[netlist.hard].sum() / (canvas.width * canvas.height)
    assert geometry.maps[..., 0].mean((1, 2)) == pytest.approx(macros, rel=1e-4)
    assert (geometry.maps[..., 1] >= geometry.maps[..., 0] - 1e-6).all()
    cells = viewer.cell_area / (canvas.width * canvas.height)
    assert (geometry.maps[..., 2].mean((1, 2)) <= cells * 1.001).all()
    assert (geometry.maps[..., 2].mean((1, 2)) > 0.6 * cells).all()


def test_boxes_hold_their_pins(design, placements):
    viewer = Viewer(design)
    lengths = viewer.see(placements[:1]).lengths[0].sum(-1) * viewer.scale
    weight = design.netlist.net_weight
    assert (lengths * viewer.weight).sum() * weight[viewer._nets].sum() == pytest.approx(
        proxy_cost(design, placements[0]).wirelength, rel=1e-4
    )


def test_cells_have_room_once_clusters_are_spread(design, placements):
    """Less stands where there is no room than with the soft macros annealed."""
    excess = Viewer(design).see(placements).parts[:, [PARTS.index("excess"), PARTS.index("spread excess")]]
    assert (excess[:, 1] < excess[:, 0]).all()


def test_a_net_for_several_is_routed_as_several(design):
    netlist = design.netlist
    weight = np.where(np.arange(netlist.num_nets) % 3 == 0, 2.0, 1.0)
    single = geometry._one_net_each(dataclasses.replace(netlist, net_weight=weight))
    assert single.num_nets == weight.sum() and (single.net_weight == 1).all()
    degree = np.diff(netlist.net_start)
    assert (np.diff(single.net_start) == np.repeat(degree, weight.astype(int))).all()
    first, second, third = (single.net_pins[single.net_start[e] : single.net_start[e + 1]] for e in range(3))
    assert (first == second).all()
    assert (third == netlist.net_pins[netlist.net_start[1] : netlist.net_start[2]]).all()


def test_a_level_does_not_depend_on_the_others(design, placements):
    ensemble = Ensemble(
        tuple(Member(parameters_of(network(seed)), 8) for seed in (0, 1)), SCALING, np.zeros(10), 0.0, 1.0, (), 0
    )
    viewer = Viewer(design)
    together = ensemble.levels(viewer, placements)
    assert together == pytest.approx([ensemble.levels(viewer, [one])[0] for one in placements], abs=1e-4)
    assert np.argsort(together).tolist() == np.argsort(ensemble.judge(viewer, placements).wirelength).tolist()


def test_half_of_what_it_says_is_the_linear_judges(design, placements):
    """By hand: the mean of the networks and of the parts times the weights, as they were before scaling."""
    scaling = Scaling(np.full(len(PARTS), 0.3, np.float32), np.full(len(PARTS), 2.0, np.float32))
    judge = ensemble()._replace(scaling=scaling)
    viewer = Viewer(design)
    geometry = viewer.see(placements)
    view = view_of(viewer, geometry, scaling)
    networks = np.mean([member.predict(view).wirelength for member in judge.members], axis=0)
    linear = geometry.parts @ judge.ridge - 0.5
    assert judge.levels(viewer, placements) == pytest.approx((networks + linear) / 2, rel=1e-4)
    together = (networks - networks.mean() + linear - linear.mean()) / 2
    assert judge.judge_view(view).wirelength == pytest.approx(together, abs=1e-4)
    assert np.std(linear) > 1e-3 and np.std(networks) > 1e-3


def test_an_estimate_reads_hard_macros_alone(design, placements):
    soft = design.netlist.soft
    estimator = Estimator(design, ensemble())
    one, other = placements[:2]
    moved = one.moved(soft, np.full(len(soft), 1.0), np.full(len(soft), 2.0))
    said = estimator.routed_wirelength(one)
    assert said == estimator.routed_wirelength(moved) != estimator.routed_wirelength(other)
    # As in the data: soft macros as the check anneals them.
    viewer = Viewer(design)
    (level,) = ensemble().levels(viewer, [settle_for_check(design, one)])
    unit = viewer.scale * design.netlist.net_weight.sum()
    assert said == pytest.approx(unit * np.exp(level), rel=1e-5)


def test_a_placement_that_lacks_a_macro_is_refused(design, placements):
    placed = placements[0].placed.copy()
    placed[design.netlist.hard[0]] = False
    with pytest.raises(DesignError, match="is not placed; all must be"):
        Viewer(design).see([dataclasses.replace(placements[0], placed=placed)])


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_scale_changes_nothing_but_the_room_for_straps(design, placements, factor, monkeypatch):
    design = dataclasses.replace(design, pdn_channel=0.0)
    monkeypatch.setattr(Viewer, "spread", lambda self, placement: placement)
    monkeypatch.setattr(geometry, "route_estimate", route_on_twenty)
    netlist, canvas = design.netlist, design.canvas
    larger = Design(
        name="larger",
        netlist=dataclasses.replace(
            netlist,
            **{field: getattr(netlist, field) * factor for field in ("width", "height", "pin_dx", "pin_dy")},
        ),
        canvas=Canvas(
            **(
                dataclasses.asdict(canvas)
                | {field: getattr(canvas, field) * factor for field in ("width", "height", "overlap_threshold")}
                | {
                    field: getattr(canvas, field) / factor
                    for field in (
                        "routes_horizontal", "routes_vertical", "macro_routes_horizontal", "macro_routes_vertical"
                    )
                }
            )
        ),
        initial=scaled(design.initial, factor),
        pdn_channel=0.0,
    )  # fmt: skip
    own = network()(seen(design, placements)).wirelength
    theirs = network()(seen(larger, [scaled(one, factor) for one in placements])).wirelength
    assert np.allclose(own, theirs, atol=1e-4)
    assert np.std(own) > 0.02


def route_on_twenty(netlist, placement, core, resources):
    return route_estimate(netlist, placement, core, dataclasses.replace(resources, gcell=core.width / 20))


def scaled(placement, factor):
    return dataclasses.replace(placement, x=placement.x * factor, y=placement.y * factor)


def test_the_order_of_nets_changes_nothing(design, placements):
    view = seen(design, placements)
    order = np.random.default_rng(0).permutation(len(view.weight))
    mixed = view._replace(
        boxes=view.boxes[:, order],
        lengths=view.lengths[:, order],
        weight=view.weight[order],
        degree=view.degree[order],
    )
    for own, other in zip(network()(view), network()(mixed), strict=True):
        assert np.allclose(own, other, atol=1e-4)


@pytest.mark.parametrize("axis", [1, 2])
def test_a_mirror_image_is_worth_as_much(design, placements, axis):
    view = seen(design, placements)
    low, high = axis - 1, axis + 1
    boxes = view.boxes.copy()
    boxes[..., low], boxes[..., high] = 1 - view.boxes[..., high], 1 - view.boxes[..., low]
    image = view._replace(maps=np.flip(view.maps, axis), boxes=boxes)
    own, other = network()(view), network()(image)
    assert np.allclose(own.wirelength, other.wirelength, atol=1e-3)
    assert np.allclose(own.maps, np.flip(other.maps, axis), atol=1e-4)


def test_turned_twice_is_as_before(design, placements):
    view = seen(design, placements)
    again = turned(turned(view))
    assert all(np.array_equal(left, right) for left, right in zip(view, again, strict=True))
    assert not np.array_equal(turned(view).maps, view.maps)


@pytest.mark.parametrize(("count", "taken"), [(4, 4), (3, 3), (11, 8)])
def test_a_step_takes_a_multiple_of_rows_in_random_order(design, placements, count, taken):
    view = seen(design, [placements[number % 4] for number in range(count)])
    targets = Targets(*(np.arange(count * width).reshape(count, width) for width in (1, 2, 3)))
    own, said = some_of(view, targets, np.random.default_rng(2))
    rows = said.wirelength[:, 0]
    assert len(set(rows)) == taken and (taken % ROWS == 0 or taken == count)
    assert rows.tolist() != sorted(rows)
    assert np.array_equal(said.maps, targets.maps[rows])
    for name in ("maps", "boxes", "lengths", "parts"):
        assert np.array_equal(getattr(own, name), getattr(view, name)[rows])
    assert own.weight is view.weight


def test_padding_counts_for_nothing(design, placements, monkeypatch):
    own = network()(seen(design, placements))
    monkeypatch.setattr("placement.judge.examples.NET_BUCKET", 4096)
    wide = seen(design, placements)
    assert len(wide.weight) == 4096
    assert np.allclose(own.wirelength, network()(wide).wirelength, atol=1e-4)


def test_box_means_by_hand():
    cells = jnp.arange(16.0).reshape(1, 4, 4, 1)
    boxes = jnp.array([[[0.0, 0.0, 0.5, 0.25], [0.3, 0.3, 0.3, 0.3], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]])
    # columns 0 and 1 of row 0: (0 + 4) / 2; the cell (1, 1); all; the last cell
    assert box_means(cells, boxes)[0, :, 0].tolist() == [2.0, 5.0, 7.5, 15.0]


def test_pair_loss_by_hand():
    actual = jnp.array([0.0, 2 * TEMPERATURE, 0.5 * TEMPERATURE])
    predicted = jnp.array([0.0, TEMPERATURE, TEMPERATURE])
    pairs = [(1.0, 1.0), (0.5, 1.0), (1.0, 0.0)]  # weight, and difference in the right direction
    expected = sum(weight * np.log1p(np.exp(-gap)) for weight, gap in pairs) / 2.5
    assert float(pair_loss(predicted, actual)) == pytest.approx(expected, rel=1e-5)
    assert float(pair_loss(-predicted, actual)) > expected
    assert float(pair_loss(predicted, jnp.zeros(3))) == 0.0


def test_pair_loss_does_not_see_a_level():
    actual, predicted = jax.random.normal(jax.random.key(0), (2, 8)) * 0.1
    assert float(pair_loss(predicted + 5, actual)) == pytest.approx(float(pair_loss(predicted, actual)), rel=1e-3)


def test_resized_keeps_the_mean():
    values = np.random.default_rng(0).random((13, 50))
    assert resized(values).shape == (CELLS, CELLS)
    assert resized(values).mean() == pytest.approx(values.mean(), rel=1e-9)
    assert resized(np.full((7, 9), 2.5)) == pytest.approx(2.5)


def test_a_fifth_is_held_out():
    assert [number for number in range(20) if held_out(number, 0.2)] == [4, 9, 14, 19]
    assert not any(held_out(number, 0.0) for number in range(20))


def ensemble():
    members = tuple(Member(parameters_of(network(seed)), 8) for seed in range(2))
    return Ensemble(members, SCALING, np.arange(len(PARTS), dtype=float) / 10, -0.5, 1.5, ("a", "b"), 3)


def test_a_judge_is_written_and_read(design, placements, tmp_path):
    save(tmp_path / "judge.npz", ensemble())
    found = read(tmp_path / "judge.npz")
    viewer = Viewer(design)
    own, other = ensemble().judge(viewer, placements), found.judge(viewer, placements)
    assert all(np.array_equal(left, right) for left, right in zip(own, other, strict=True))
    assert found.designs == ("a", "b")
    assert np.array_equal(found.ridge, ensemble().ridge) and found.level == -0.5
    assert own.wirelength.mean() == pytest.approx(0, abs=1e-6)
    assert (own.deviation > 0).all()


@pytest.mark.parametrize(
    "broken",
    [
        {"ridge": np.zeros(4)},
        {"ridge": np.full(len(PARTS), np.nan)},
        {"level": np.nan},
        {"factor": np.inf},
        {"scaling": Scaling(np.zeros(3), np.ones(3))},
        {"members": ()},
    ],
)
def test_a_judge_that_could_say_nothing_is_refused(tmp_path, broken):
    path = tmp_path / "judge.npz"
    save(path, ensemble()._replace(**broken))
    with pytest.raises(DesignError, match=r"judge\.npz: no judge, or a damaged one"):
        read(path)


def test_the_digest_tells_every_number(tmp_path):
    other = [ensemble()._replace(level=0.0), ensemble()._replace(ridge=np.zeros(len(PARTS)))]
    assert len({one.digest for one in (ensemble(), *other)}) == 3


def test_a_judge_of_another_form_is_told_apart(tmp_path, monkeypatch):
    path = tmp_path / "old.npz"
    with monkeypatch.context() as before:
        before.setattr("placement.judge.ensemble.FORM", 3)
        save(path, ensemble())
    with pytest.raises(DesignError, match=r"old.npz: is of form 3; this version reads form 4: train it again"):
        read(path)


def test_halos_turn_with_their_macros(design, placements):
    """A macro that lies on its side has the halo of one that is drawn so."""
    hard = int(design.netlist.hard[0])
    halo = np.zeros((design.netlist.num_nodes, 2))
    halo[hard] = 8.0, 0.0
    design = dataclasses.replace(
        design, pdn_channel=0.0, constraints=dataclasses.replace(design.constraints, halo=halo)
    )
    one = placements[0]
    turned = dataclasses.replace(
        one, orientation=np.where(np.arange(len(one.x)) == hard, 4, one.orientation).astype(np.int8)
    )
    cores = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            from_clusters, "spread_clusters", lambda netlist, placement, core, standing: cores.append(core) or placement
        )
        for placement in (one, turned):
            Viewer(design).spread(placement)
    assert [core.halo[hard].tolist() for core in cores] == [[8.0, 0.0, 8.0, 0.0], [0.0, 8.0, 0.0, 8.0]]


def test_clusters_spread_from_where_they_are_annealed(design, placements):
    viewer = Viewer(design)
    settled, soft = placements[0], design.netlist.soft
    elsewhere = settled.moved(soft, *np.random.default_rng(0).permuted([settled.x[soft], settled.y[soft]], axis=1))
    one, other = viewer.spread(settled), viewer.spread(elsewhere)
    assert np.hypot(one.x - other.x, one.y - other.y)[soft].mean() > 1.0


def test_a_judge_that_is_cut_is_refused(tmp_path):
    path = tmp_path / "judge.npz"
    save(path, ensemble())
    whole = path.read_bytes()
    for length in (0, 200, len(whole) - 5):
        path.write_bytes(whole[:length])
        with pytest.raises(DesignError, match=r"judge\.npz: no judge, or a damaged one"):
            read(path)
    with pytest.raises(DesignError, match="cannot be read"):
        read(tmp_path / "nothing.npz")


def test_weights_of_another_network_are_refused():
    with pytest.raises(ValueError, match="another network"):
        with_parameters(4, parameters_of(network()))
