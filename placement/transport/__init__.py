"""Servers on this machine that other processes talk to: started, kept off the network, stopped."""
