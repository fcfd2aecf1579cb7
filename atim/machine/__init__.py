"""The machine at hand: what is installed, which DPUs there are, how fast it copies and launches."""
