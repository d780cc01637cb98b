"""Networks that are written down, not trained: blocks of weights with a proof of what they do.

blocks      what a block is (hardmax attention of rank one, one ReLU neuron), the model that blocks make,
            and its forward pass
sequences   blocks that carry given sequences to given points exactly
table       how exact that is in double precision, over numbers of sequences and dimensions
"""

from .blocks import Attend as Attend
from .blocks import Block as Block
from .blocks import Push as Push
from .blocks import forward as forward
from .blocks import forward_all as forward_all
from .blocks import network as network
from .blocks import run_blocks as run_blocks
from .sequences import Conditioning as Conditioning
from .sequences import Interpolant as Interpolant
from .sequences import interpolate_sequences as interpolate_sequences
from .table import error_table as error_table
from .table import random_sequences as random_sequences
