"""What would have saved it: the recorded program, replayed under other settings of the allocator."""
