"""One file per metric: a plain function of prepared arrays, the facts about it, and the drivers that make records."""
