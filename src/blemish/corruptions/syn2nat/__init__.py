"""The forty candidates of Syn2Nat."""
