"""What the papers say, one folder a paper: its identity, its claims, its figures.

A new paper is a new folder here and nothing else; docs/ledger.md shows one (`tokenflock.ledger.paper` says
what is in a folder).
"""
