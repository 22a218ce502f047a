"""The papers' neural systems: what they read and write, entity memory, and running them. Needs the extra `train`."""
