"""One episode as one item of a Reverb table: how it is written, read, and refused; shared by all that use Reverb here.

What Reverb 0.14 leaves to its users: a read from a dead server waits for ever (here it can be cancelled), and so does
the making of a writer that validates (here the table's signature is asked for, with a deadline). Reading goes through
its dataset (its documentation: `Client.sample` is not for training) with one worker, which first-in-first-out order
needs.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import numpy as np

from placement.ppo.trajectory import Episode
from placement.replay.validation import MalformedEpisode, Schema
from placement.transport.addresses import accepts
from placement.transport.loopback import quiet_standard_error
from placement.transport.reverb_server import reverb, tf
from placement.transport.tunnel import Dial, direct

# reverb_server comes first: it has TensorFlow start quietly.
# isort: split
from tensorflow.python.data.util import structure
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.cancellation import CancellationManager

TABLE = "episodes"
PREFETCH = 2
"""Episodes that Reverb fetches ahead for an open reader, at most."""

GONE_SECONDS, GONE_ATTEMPTS = 10.0, 3
"""Behind a link that others fill, a connection takes its time, and may get lost."""
HUNG_SECONDS = 120.0
"""A shard that takes connections, but has answered nothing for so long, counts as down."""


class ShardMismatch(RuntimeError):
    """A shard holds episodes of another shape than this run's."""


class ItemsEnded(Exception):
    """A reader brings no more: its server is gone, or it was cancelled."""


def make_table(schema: Schema, *, capacity: int) -> reverb.Table:
    """First in, first out; each item is taken once; writers wait while it holds `capacity` items."""
    specs = {name: tf.TensorSpec(array.shape, array.dtype) for name, array in schema.fields()}
    return reverb.Table.queue(TABLE, capacity, signature=specs)


def probe(address: str, *, timeout: float, dial: Dial = direct) -> Any | None:
    """What the episodes' table at `address` tells of itself (`TableInfo`); None if nobody answers in time.

    Args:
        address: of its server, `host:port`.
        timeout: seconds.
        dial: the way there.
    """
    if address and accepts(address, timeout=timeout):
        with contextlib.suppress(reverb.errors.ReverbError, RuntimeError):
            return reverb.Client(dial(address)).server_info(timeout=max(1, round(timeout))).get(TABLE)
    return None


def gone(address: str) -> bool:
    """Whether nothing takes connections at `address` any more; at once if they are refused.

    This is what is asked of a shard that one is connected to: gRPC sends its questions over the connection that the
    episodes take, so that over a slow link an answer comes only after all episodes that are under way.
    """
    return not any(accepts(address, timeout=GONE_SECONDS) for _ in range(GONE_ATTEMPTS))


def require_episodes(info: Any, schema: Schema, *, shard: int, address: str) -> None:
    """Raises ShardMismatch unless a table's signature (of `TableInfo`) is that of the schema's episodes."""
    found = {}
    if isinstance(info.signature, dict):
        found = {name: (tuple(spec.shape), spec.dtype.as_numpy_dtype) for name, spec in info.signature.items()}
    if found != {name: (array.shape, array.dtype.type) for name, array in schema.fields()}:
        raise ShardMismatch(
            f"replay shard {shard} ({address}) does not hold episodes of {len(schema.like.actions)} steps: it belongs "
            "to another run; stop it, or give this run shards of its own"
        )


class ItemWriter:
    """One thread's Reverb writer to one shard, which has one item under way at most; `dial` is the way there.

    Attributes:
        shard, address: the shard's number, and where it is.
        pending: the episode that was handed over and is not known to be in the table; None = none.
        began: when that was handed over, by the monotonic clock.
    """

    def __init__(self, address: str, *, shard: int = 0, dial: Dial = direct) -> None:
        self.shard, self.address, self.began = shard, address, 0.0
        # Validation would ask the server for the signature, without a deadline.
        self._writer = reverb.Client(dial(address)).trajectory_writer(num_keep_alive_refs=1, validate_items=False)
        self.pending: Episode | None = None

    def begin(self, episode: Episode) -> None:
        """Hands over an episode without waiting."""
        self._writer.append(episode._asdict())
        self._writer.create_item(TABLE, 1.0, {name: column[-1] for name, column in self._writer.history.items()})
        self.pending, self.began = episode, time.monotonic()

    def flush(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds; whether the table has the item. Raises RuntimeError if the server stopped."""
        try:
            self._writer.flush(0, timeout_ms=max(int(timeout * 1000), 1))
        except reverb.errors.DeadlineExceededError:
            return False
        self.pending = None
        return True

    def close(self) -> None:
        """Gives up what is pending."""
        self._writer.close()


class ItemReader:
    """Takes the items of one server's table, oldest first; for one thread, save `cancel`.

    Args:
        address: of a server that answers (with a dead one this takes half a minute).
        schema: what episodes must look like.
        dial: the way there.
    """

    def __init__(self, address: str, schema: Schema, *, dial: Dial = direct) -> None:
        self._schema = schema
        self._cancellation = CancellationManager()
        with quiet_standard_error():  # Reverb tells of a server in this process
            self._iterator = iter(_dataset(dial(address), schema))

    def next(self) -> Episode:
        """The next episode, waiting for it until cancelled.

        Raises:
            MalformedEpisode: the next item was none, and is thrown away.
            ItemsEnded: there will be no more.
        """
        try:
            data = self._next().data
        except tf.errors.InvalidArgumentError as error:
            raise MalformedEpisode(f"not the table's structure: {_first_line(error)}") from None
        except tf.errors.OpError as error:
            raise ItemsEnded(_first_line(error)) from None
        episode = Episode(**{name: np.asarray(data[name].numpy(), like.dtype) for name, like in self._schema.fields()})
        self._schema.check(episode)
        return episode

    def _next(self) -> Any:
        """`next(iterator)` that can be cancelled.

        TensorFlow (whose version Reverb pins) has that for functions only, and a function closes the reader, with what
        it fetched ahead, at the first malformed item.
        """
        iterator = self._iterator
        types, shapes = iterator._flat_output_types, iterator._flat_output_shapes
        tensors = execute.execute_with_cancellation(
            "IteratorGetNext",
            len(types),
            inputs=[iterator._iterator_resource],
            attrs=("output_types", types, "output_shapes", shapes),
            ctx=context.context(),
            cancellation_manager=self._cancellation,
        )
        return structure.from_compatible_tensor_list(iterator.element_spec, tensors)

    def cancel(self) -> None:
        """Ends the reader, from any thread: a waiting `next` raises ItemsEnded. What was fetched ahead is lost."""
        self._cancellation.start_cancel()


def _dataset(address: str, schema: Schema) -> tf.data.Dataset:
    dataset = reverb.TrajectoryDataset(
        address,
        TABLE,
        dtypes={name: array.dtype for name, array in schema.fields()},
        shapes={name: tf.TensorShape(array.shape) for name, array in schema.fields()},
        max_in_flight_samples_per_worker=1,
        num_workers_per_iterator=1,
    )
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def _first_line(error: tf.errors.OpError) -> str:
    return str(error.message).strip().split(os.linesep)[0][:200]
