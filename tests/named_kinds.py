"""The two exponential kinds by the names that papers give them, for tests with one case each."""

from tokenflock.kinds import Softmax, Unnormalised


def named_kind(model, convention="perspective"):
    return {"SA": Softmax(), "USA": Unnormalised(convention)}[model]
