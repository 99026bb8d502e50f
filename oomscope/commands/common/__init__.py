"""What the commands share: options, the way from a file to findings, where results go, errors in one line."""
