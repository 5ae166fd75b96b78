"""A user-defined policy network, for `policy=own_policy.WireFollower`; docs/how-to/own-policy.md."""

import jax
import jax.numpy as jnp
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import MAPS, Observation
from placement.policy.edge_gnn import ILLEGAL
from placement.policy.inputs import GraphInputs


class WireFollower(nnx.Module):
    """Logits from a macro's size: how strongly it follows the wire mask, and how strongly it avoids density."""

    def __init__(self, config: PolicyConfig, *, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(2, config.node_width, rngs=rngs)
        self.weights = nnx.Linear(config.node_width, 2, rngs=rngs)

    def embed(self, inputs: GraphInputs) -> jax.Array:
        """Returns embeddings of each design's macros from their sizes, float32 [G, T, W]."""
        return nnx.relu(self.hidden(4 * jnp.asarray(inputs.size)))

    def decide(
        self, embeddings: jax.Array, inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None
    ) -> jax.Array:
        """Returns the logits, float32 [B, R, C]."""
        design = jnp.asarray(observation.design)
        step = jnp.minimum(jnp.asarray(observation.step), inputs.macros[design] - 1)
        macro = embeddings[design, step]  # [B, W]
        maps = jnp.asarray(observation.maps, jnp.float32)
        followed = maps[:, jnp.array([MAPS.index("wire_mask"), MAPS.index("density")])]  # [B, 2, R, C]
        logits = -jnp.einsum("bk,bkrc->brc", self.weights(macro), followed)
        return jnp.where(jnp.asarray(observation.mask) != 0, logits, ILLEGAL)
