"""Which calls are the blocks of a model, or its parts, and which are made again."""
