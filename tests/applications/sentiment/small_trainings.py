"""Test support: one small training whose compiled programs all tests share."""

from tokenflock.applications.sentiment import Settings, synthetic_reviews

SMALL = Settings(d=2, depth=2, epochs=3, batch=32, length=32, validation=0.2, test=0.2)


def few_reviews():
    return synthetic_reviews(400)
