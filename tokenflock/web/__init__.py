"""The page: its server, the engine behind it, stored results as replays, the notebook widget."""
