"""Short documents that each answer one question, for agents and scripts that have room for little."""
