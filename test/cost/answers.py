"""Requests whose answer is long, or that take long to work out: answers of a bounded length, and stacks that are walked."""
import hostile

GENERATORS = {name: (make, ["service"]) for name, make in {**hostile.ANSWERS, **hostile.WORK}.items()}
