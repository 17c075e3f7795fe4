"""Fuzzers of the parsers and writers: README.md beside this file says how to run them."""
