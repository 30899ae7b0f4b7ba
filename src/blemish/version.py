"""The library's version, which every stored result names."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
