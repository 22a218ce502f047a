"""Training: adapters for the embedded model, and the neural systems of the papers. Needs the extra `train`."""
