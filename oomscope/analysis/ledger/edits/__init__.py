"""The remedies of the ledger: one file each, an edit of the trace."""
