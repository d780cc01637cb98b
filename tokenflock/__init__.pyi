from .measure import uniform as uniform
