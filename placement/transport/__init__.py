"""Connections between the processes of a run: addresses and failover, gates and tunnels, Reverb servers, waits."""
