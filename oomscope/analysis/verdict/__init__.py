"""Why a request failed."""
