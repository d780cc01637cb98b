"""Hardmax in use (2407.01602): a sentiment classifier that is trained, and that can be read.

reviews = training.read_reviews(Path("reviews.csv"))
result = training.train(reviews, training.Settings(d=2), Path("runs/reviews"), source="reviews.csv")
flock.open("runs/reviews").explain("a wonderful film")
"""

from .classifier import Classifier as Classifier
from .explain import Trained as Trained
from .explain import open_training as open_training
from .reviews import Reviews as Reviews
from .reviews import make_reviews as make_reviews
from .reviews import read_reviews as read_reviews
from .sentiment import train as train
from .settings import Settings as Settings
from .synthetic import synthetic_reviews as synthetic_reviews
