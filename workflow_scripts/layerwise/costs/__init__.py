"""What a study will cost, before it runs: sizes of models, bytes of files, memory, operations, and what a job asks for."""
