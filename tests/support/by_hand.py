"""Writes arbitrary data of a client into a replay shard, bypassing every check of this project and of Reverb's
client.
"""

from __future__ import annotations

from placement.replay.shard_items import TABLE
from placement.transport.reverb_server import reverb


def write_item(address: str, data: object, *, timeout: float = 20.0) -> None:
    """Writes one item.

    Args:
        address: of the shard.
        data: a dict of arrays, or a list of one array.
        timeout: seconds; raises DeadlineExceededError after them.
    """
    writer = reverb.Client(address).trajectory_writer(num_keep_alive_refs=1, validate_items=False)
    writer.append(data)
    columns = writer.history
    item = {name: column[-1] for name, column in columns.items()} if isinstance(data, dict) else [columns[0][-1]]
    writer.create_item(TABLE, 1.0, item)
    writer.flush(0, timeout_ms=int(timeout * 1000))
    writer.close()
