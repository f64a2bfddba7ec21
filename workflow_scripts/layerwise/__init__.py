"""layerwise: which layer of a model holds the best representation, and can one know it without labels?"""
