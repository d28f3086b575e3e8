"""Networks as a line of text, the same for all systems: "conv32x3 pool2 dense64 dense10".

    conv32x3   a convolution of 32 filters of 3x3, VALID, then ReLU
    pool2      the greatest of each 2x2
    dense64    64 units, then ReLU; the last layer has none

x is a picture of Fashion-MNIST, 28x28x1, and is flattened before the first dense layer. `parse` gives
the layers with their shapes, from which peers build the network; `c_source` is a FILE.c for
`lockstep train`.
"""
import dataclasses
import math
import re

NETWORKS = {
    "cnn": "conv32x3 pool2 dense64 dense10",
    "cnn2": "conv32x3 pool2 conv64x3 pool2 dense64 dense10",
    "mlp": "dense2048 dense2048 dense10",
}
SIDE, PIXELS = 28, 28 * 28
WORD = re.compile(r"(?:conv([1-9]\d*)x([1-9]\d*)|pool([1-9]\d*)|dense([1-9]\d*))$")


@dataclasses.dataclass(frozen=True)
class Layer:
    kind: str         # conv, pool or dense
    units: int        # filters or units; of a pool those of its input
    window: int       # of a conv or pool; else 1
    inputs: int       # channels, or numbers in a row
    side: int         # of the picture that comes out; of a dense layer 1
    relu: bool

    @property
    def parameters(self):
        if self.kind == "pool":
            return 0
        return (self.window * self.window * self.inputs + 1) * self.units

    @property
    def outputs(self):
        """Numbers that come out for one sample."""
        return self.side * self.side * self.units

    @property
    def products(self):
        """Multiplications for one sample, forward."""
        if self.kind == "pool":
            return 0
        return self.window * self.window * self.inputs * self.outputs


def parse(text):
    """The layers of a network; ValueError says what is wrong with it."""
    layers, side, width, flat = [], SIDE, 1, False
    words = text.split()
    for i, word in enumerate(words):
        match = WORD.match(word)
        if not match:
            raise ValueError(f"'{word}' in '{text}' is none of conv32x3, pool2, dense64")
        filters, window, pool, units = (int(n) if n else 0 for n in match.groups())
        if units:
            inputs = width if flat else side * side * width
            layers.append(Layer("dense", units, 1, inputs, 1, i + 1 < len(words)))
            width, flat = units, True
            continue
        after = side - window + 1 if filters else side // pool
        if flat or after < 1:
            raise ValueError(f"'{word}' in '{text}' gets no picture that is large enough")
        layers.append(Layer("conv" if filters else "pool", filters or width, window or pool, width,
                            after, bool(filters)))
        side, width = after, filters or width
    if not layers or layers[-1].kind != "dense":
        raise ValueError(f"'{text}' does not end with a dense layer")
    return layers


def parameters(text):
    return sum(layer.parameters for layer in parse(text))


def outputs(text):
    """Numbers that a sample and what layers make of it are."""
    return PIXELS + sum(layer.outputs for layer in parse(text))


def operations(text):
    """Of one sample in a training step: a multiplication and an addition, forward and twice backward."""
    return 6 * sum(layer.products for layer in parse(text))


def mlp_of(wanted):
    """Two hidden layers of one width w, about so many parameters: w^2 + (784 + 1 + 1 + 10) w + 10."""
    linear = PIXELS + 12
    width = round((math.sqrt(linear * linear + 4 * (wanted - 10)) - linear) / 2)
    return f"dense{max(1, width)} dense{max(1, width)} dense10"


C_FILE = """/* {text} */
#include <lockstep/train.h>

ls_model *lockstep_model(void)
{{
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[28,28,1]"));
{layers}
    return m;
}}
"""


def c_source(text):
    """The network as a FILE.c."""
    lines, flat = [], False
    for layer in parse(text):
        relu = ", .activation = ls_relu" if layer.relu else ""
        if layer.kind == "conv":
            lines.append(f"ls_conv_layer(m, LS_CONV_LAYER(.filters = {layer.units}, "
                         f".window = {layer.window}{relu}));")
        elif layer.kind == "pool":
            lines.append(f"ls_max_pool_layer(m, {layer.window});")
        else:
            lines += [] if flat else ["ls_flatten_layer(m);"]
            lines.append(f"ls_dense_layer(m, LS_DENSE_LAYER(.units = {layer.units}{relu}));")
            flat = True
    return C_FILE.format(text=text, layers="\n".join("    " + line for line in lines))
