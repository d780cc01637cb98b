"""The page: its server, the engine behind it, stored results as replays, the page in a notebook."""
