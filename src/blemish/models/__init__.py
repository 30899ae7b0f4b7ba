"""Classifiers of every kind behind one call, and the small networks that come with the library."""
