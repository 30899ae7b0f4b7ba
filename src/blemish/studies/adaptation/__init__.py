"""Test-time adaptation: methods that change a model while it classifies, behind one protocol."""
