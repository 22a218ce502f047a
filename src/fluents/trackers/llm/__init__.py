"""Tracking with any language model that answers questions: OpenPI2.0's pipeline, and its whole-procedure form."""
