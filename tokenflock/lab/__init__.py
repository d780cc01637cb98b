"""The lab: runs described by files, with results that survive."""
