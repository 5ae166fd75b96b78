"""Writes, reads and rejects episodes as items of a Reverb table; shared by all users of Reverb here.

Reverb 0.14 leaves two problems to its users: a read from a dead server waits forever (here it can be cancelled), and so
does the creation of a validating writer (here the table's signature is requested with a deadline). Reading uses its
dataset with one worker, which first-in-first-out order needs; its documentation says that `Client.sample` is not for
training.
"""

import contextlib
import os
import time
from typing import Any

import numpy as np

from placement.episode import Episode, MalformedEpisode, Schema
from placement.transport.addresses import accepts
from placement.transport.gate import Dial, direct
from placement.transport.reverb_server import quiet_standard_error, reverb, tf

# reverb_server comes first: it makes TensorFlow start quietly.
# isort: split
from tensorflow.python.data.util import structure
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.cancellation import CancellationManager

TABLE = "episodes"
PROBE_SECONDS = 5.0  # timeout for a shard to answer `probe`, in seconds
GONE_SECONDS, GONE_ATTEMPTS = 10.0, 3
"""Timeout and attempts of a connection; on a link full of other traffic it takes its time, and may get lost."""
SILENCE_SECONDS = 30.0  # seconds without an answer after which a shard that accepts connections counts as down


class ShardMismatch(RuntimeError):
    """A shard stores episodes of another shape than this run's."""


class ItemsEnded(Exception):
    """A reader yields no more items: its server is gone, or it was cancelled."""


def make_table(schema: Schema, *, capacity: int) -> reverb.Table:
    """A first-in-first-out table whose items are taken once; writers wait while it contains `capacity` items."""
    specs = {name: tf.TensorSpec(array.shape, array.dtype) for name, array in schema.fields()}
    return reverb.Table.queue(TABLE, capacity, signature=specs)


def probe(address: str, *, timeout: float = PROBE_SECONDS, dial: Dial = direct) -> Any | None:
    """The `TableInfo` of the episodes' table at `address`; None without an answer within `timeout` seconds."""
    if address and accepts(address, timeout=timeout):
        with contextlib.suppress(reverb.errors.ReverbError, RuntimeError):
            return reverb.Client(dial(address)).server_info(timeout=max(1, round(timeout))).get(TABLE)
    return None


def is_gone(address: str) -> bool:
    """Returns whether the server at `address` is gone; a refused connection shows this at once.

    A connected client uses this instead of `probe`: gRPC sends queries over the connection that carries the episodes,
    so that over a slow link an answer arrives only after all episodes under way.
    """
    return not any(accepts(address, timeout=GONE_SECONDS) for _ in range(GONE_ATTEMPTS))


def is_silent(since: float) -> bool:
    """Whether a shard that last answered at `since` (monotonic clock) has been silent for too long."""
    return time.monotonic() - since > SILENCE_SECONDS


def require_episodes(info: Any, schema: Schema, *, shard: int, address: str) -> None:
    """Raises ShardMismatch unless the table of a `TableInfo` stores the schema's episodes."""
    found = {}
    if isinstance(info.signature, dict):
        found = {name: (tuple(spec.shape), spec.dtype.as_numpy_dtype) for name, spec in info.signature.items()}
    if found != {name: (array.shape, array.dtype.type) for name, array in schema.fields()}:
        raise ShardMismatch(
            f"replay shard {shard} ({address}) does not contain episodes of {len(schema.like.actions)} steps: it "
            "belongs to another run; stop it, or give this run separate shards"
        )


class ItemWriter:
    """One thread's Reverb writer to one shard, with at most one item under way.

    Attributes:
        shard, address: the shard's number and address.
        pending: the submitted episode that is not known to be in the table; None = none.
        began: the time of its submission, by the monotonic clock.
    """

    def __init__(self, address: str, *, shard: int = 0, dial: Dial = direct) -> None:
        self.shard, self.address, self.began = shard, address, 0.0
        # Validation would ask the server for the signature, without a deadline.
        self._writer = reverb.Client(dial(address)).trajectory_writer(num_keep_alive_refs=1, validate_items=False)
        self.pending: Episode | None = None

    def begin(self, episode: Episode) -> None:
        """Submits an episode without waiting."""
        self._writer.append(episode._asdict())
        self._writer.create_item(TABLE, 1.0, {name: column[-1] for name, column in self._writer.history.items()})
        self.pending, self.began = episode, time.monotonic()

    def flush(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds; returns whether the table has the item; RuntimeError if the server stopped."""
        try:
            self._writer.flush(0, timeout_ms=max(int(timeout * 1000), 1))
        except reverb.errors.DeadlineExceededError:
            return False
        self.pending = None
        return True

    def close(self) -> None:
        """Abandons the pending episode."""
        self._writer.close()


class ItemReader:
    """Takes the items of one server's table, oldest first; for one thread, except `cancel`.

    Args:
        address: address of a server that answers (with a dead one this takes half a minute).
        schema: what episodes must satisfy.
        dial: see `Dial`.

    Raises:
        ItemsEnded: the server has ended.
    """

    def __init__(self, address: str, schema: Schema, *, dial: Dial = direct) -> None:
        self._schema = schema
        self._cancellation = CancellationManager()
        try:
            with quiet_standard_error():  # Reverb prints a line about a server in this process.
                self._iterator = iter(_dataset(dial(address), schema))
        except tf.errors.OpError as error:
            raise ItemsEnded(_first_line(error)) from None

    def next(self) -> Episode:
        """Returns the next episode; waits for it until cancelled.

        Raises:
            MalformedEpisode: the next item was not an episode of the schema, and is dropped.
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

        TensorFlow (whose version Reverb pins) offers that for functions only, and a function closes the reader, with
        its prefetched items, at the first malformed item.
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
        """Ends the reader, from any thread: a waiting `next` raises ItemsEnded. Prefetched items are lost."""
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
