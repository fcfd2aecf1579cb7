"""Open cycle-level simulator of the UPMEM machine."""
