"""Training one network per corruption, to see which corruptions help against which."""
