"""What the program itself said while it ran: its ranges, metadata, compiled regions and pools."""
