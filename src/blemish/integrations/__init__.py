"""blemish inside other libraries: one module for each, imported by its name alone, which imports the library it is for.

Nothing else in blemish imports them.
"""
