"""Who made a block, and who keeps it alive."""
