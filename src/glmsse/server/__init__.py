"""A stand-in provider for loopback: tests, demos, and trying a client without a key. Needs the extra `server`."""
