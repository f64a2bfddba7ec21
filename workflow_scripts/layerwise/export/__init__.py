"""Export: the chosen layer as a model that the libraries its users already have can load."""
