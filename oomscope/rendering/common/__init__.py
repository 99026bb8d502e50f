"""What the formats of the report share."""
