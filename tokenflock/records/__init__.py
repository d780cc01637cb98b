"""The catalogue of results: find, list, show, compare and export what runs, traces and sweeps left.

finding    folders that hold results, without following links out of them
facts      what one result says of itself: its columns, its spec, its axes
index      those facts in SQLite, kept fresh by the dates of files
where      conditions such as beta > 4 and model == 'SA'
catalogue  the list: folders, condition, order
opening    any result as what computed it gave, and as one labelled dataset
showing, cells, comparing, exporting   what the commands do
"""

from .catalogue import runs
from .opening import open

__all__ = ["open", "runs"]
