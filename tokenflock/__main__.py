"""`python -m tokenflock` is the command line."""

from .cli import main

main()
