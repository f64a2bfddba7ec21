"""Training miniatures: small models on a dataset of the study, saved at chosen steps as ordinary model folders."""
