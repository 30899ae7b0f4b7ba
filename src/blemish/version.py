"""The library's version, which every stored result names."""

VERSION = "0.1.0"
