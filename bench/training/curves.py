"""Sweeps as curves: curves(sweeps, machine line) -> SVG. Time above, memory below, both scales logarithmic;
blue is measured, dashed is the ideal."""
import math

import svg
import table

PANEL, HEIGHT, LEFT, TOP, GAP = 290, 210, 70, 92, 84
MEASURES = (("time of a step, ms", "seconds", 1000), ("peak memory, MiB", "bytes", 2**-20))


def ticks(low, high):
    """Powers of ten from below low to above high; of two where that is less than one power."""
    base = 10 if high / low >= 20 else 2
    first = math.floor(math.log(low, base) + 1e-9)
    last = max(first + 1, math.ceil(math.log(high, base) - 1e-9))
    return [float(base) ** n for n in range(first, last + 1)]


def short(x):
    """An axis's number: 10^8 rather than 100000000."""
    power = round(math.log10(x)) if x >= 10000 else None
    return f"1e{power}" if power else f"{x:,g}"


def panel(picture, left, top, name, rows, measure):
    title, key, unit = measure
    measured = [(row["x"], row[key] * unit) for row in rows]
    wanted = [(row["x"], row["ideal_" + key] * unit) for row in rows]
    marks = ticks(min(y for _, y in measured + wanted), max(y for _, y in measured + wanted))
    xs = [row["x"] for row in rows]

    def place(point):
        across = math.log(point[0] / xs[0]) / (math.log(xs[-1] / xs[0]) or 1)
        up = math.log(point[1] / marks[0]) / math.log(marks[-1] / marks[0])
        return left + PANEL * across, top + HEIGHT * (1 - up)

    picture.text(left, top - 10, f"{title}, by {name}", size=13, bold=True)
    for mark in marks:
        y = place((xs[0], mark))[1]
        picture.line(left, y, left + PANEL, y, stroke=svg.FAINT)
        picture.text(left - 8, y + 4, table.number(mark), size=11, fill=svg.GREY, anchor="end")
    for x in xs:
        picture.text(place((x, marks[0]))[0], top + HEIGHT + 18, short(x), size=11, fill=svg.GREY,
                     anchor="middle")
    picture.path([place(p) for p in wanted], svg.GREY, dashed=True)
    picture.path([place(p) for p in measured], svg.BLUE)
    for point in measured:
        picture.dot(*place(point), svg.BLUE)


def curves(sweeps, machine):
    width = len(sweeps) * (PANEL + GAP) + 30
    height = TOP + 2 * (HEIGHT + GAP)
    picture = svg.Picture(max(width, 720), height, "How Lockstep's training grows")
    picture.text(20, 28, picture.title, size=17, bold=True)
    picture.text(20, 46, machine, size=11, fill=svg.GREY)
    picture.text(20, 62, "blue: measured; dashed: the ideal, from the first point (bench/README.md); "
                 "scales are logarithmic", size=11, fill=svg.GREY)
    for column, (name, rows) in enumerate(sweeps.items()):
        for line, measure in enumerate(MEASURES):
            panel(picture, LEFT + column * (PANEL + GAP), TOP + 4 + line * (HEIGHT + GAP), name, rows,
                  measure)
    return picture.render()
