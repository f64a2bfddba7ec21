"""Models: where their files come from, how they are loaded, and where their layers begin and end."""
