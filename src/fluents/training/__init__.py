"""Teaching models: examples from traces, and one readable loop. Needs the extra `train`."""
