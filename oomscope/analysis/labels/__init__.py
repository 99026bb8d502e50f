"""What a block is: part of a model, of a pass, of the optimizer; and the names people give it."""
