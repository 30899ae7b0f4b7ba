"""The arena: test-time adaptation methods compared on the same streams, each stream a setting written down as data."""
