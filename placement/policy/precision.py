"""In which floating-point type the products of the policy are made.

Accelerators make float32 products with fewer digits unless told otherwise (TPUs in bfloat16, NVIDIA GPUs in TF32). What
becomes a logit must not: an actor and a learner that round differently disagree on what the action's probability was.
So every product of float32 operands is made at full precision, and only `product` rounds, where `dtype` says so.
"""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp

from placement.config import PolicyConfig

FLOAT32 = jnp.dtype(jnp.float32)


def product_dtype(config: PolicyConfig) -> jnp.dtype:
    """What `config.dtype` means on this process's default devices: float32 or bfloat16.

    An actor on a CPU beside a learner on an accelerator draws in float32 what the learner computes in bfloat16: at the
    learner's first step the importance ratios are then 1 only to within bfloat16's rounding. With one of the two
    types named, both use it.
    """
    if config.dtype == "auto":
        return FLOAT32 if jax.default_backend() == "cpu" else jnp.dtype(jnp.bfloat16)
    return jnp.dtype(config.dtype)


def rounded(array: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """`array` with the digits of `dtype`; on a CPU, which lacks such products, still of type float32."""
    if dtype == FLOAT32 or jax.default_backend() != "cpu":
        return array.astype(dtype)
    info = jnp.finfo(dtype)
    return jax.lax.reduce_precision(array, exponent_bits=info.nexp, mantissa_bits=info.nmant)


def product(subscripts: str, *operands: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """An einsum of operands rounded to `dtype`, added up in float32: float32."""
    full = jax.lax.Precision.HIGHEST if dtype == FLOAT32 else jax.lax.Precision.DEFAULT
    digits = [rounded(one, dtype) for one in operands]
    return jnp.einsum(subscripts, *digits, preferred_element_type=jnp.float32, precision=full)


def full_precision() -> contextlib.AbstractContextManager[None]:
    """What is traced within makes its products of float32 operands in float32, whatever the device's habit."""
    return jax.default_matmul_precision("highest")
