"""The cases of tools/golden.py, a file per group of operators."""
from . import core  # first: it sets TensorFlow's environment
from . import axes, elementwise, layers, losses, pictures, shape  # each adds to core.OPS
