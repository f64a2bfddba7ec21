"""Figures: each file draws one question from the result tables; they compute no statistics."""
