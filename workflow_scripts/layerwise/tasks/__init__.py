"""Tasks: layer scores from stored vectors. No model runs here."""
