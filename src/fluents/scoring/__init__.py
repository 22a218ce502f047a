"""What the metrics share: alignment of gold and predictions, statistics, scores, resampling."""
