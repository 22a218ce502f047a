"""What models are asked: every prompt has a version, which a trace names."""
