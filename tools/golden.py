#!/usr/bin/env python3
"""Asks TensorFlow what every operator gives, and writes it to tests/golden/OP.txt.

    python3 -m venv golden-venv
    golden-venv/bin/pip install tensorflow-cpu
    golden-venv/bin/python tools/golden.py tests/golden [OP ...]

The files are committed; this runs again only when an operator or a case is
added. The optimizers' cases go to golden_optimizers.txt beside the folder, and loss curves
of two replicas to golden_curves.txt, when no OP is named or `optimizers` (`curves`) is one. It is deterministic: the numbers of an
operator depend on its name alone. The format is described in tests/support/case.h.

Where TensorFlow has no kernel for a dtype, the case is left out and a line
says so. Where ops.h promises something that TensorFlow does not (statistics of
0 rows are 0, a cast saturates), the case is marked `formula` and its
values come from the formula. Two kinds of flags matter to the readers:
`nofd` marks inputs at which finite differences mean nothing (kinks, ties, the
ends of a domain), `tol` a tolerance other than the usual one of the dtype.
"""
import os
import sys

from golden_ops import core, curves, optimizers


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, wanted = sys.argv[1], sys.argv[2:] or sorted(core.OPS)
    os.makedirs(folder, exist_ok=True)
    curves.two_devices()
    for name, module in ("optimizers", optimizers), ("curves", curves):
        if not sys.argv[2:] or name in wanted:
            module.write(os.path.normpath(folder) + "_%s.txt" % name)
    for name in wanted:
        if name in ("optimizers", "curves"):
            continue
        o = core.Op(name)
        core.OPS[name](o)
        o.write(folder)


if __name__ == "__main__":
    main()
