"""The rows of `make bench` as bars: bars(summary, machine line, when) -> SVG.

A group has a scale of its own, from 0. The bar is the median, the thin line over it the spread of the
rounds, the upright line what was wanted; a row that missed it is orange, and says so; one that wants nothing is grey.
"""
import svg
import table

WIDTH, LEFT, RIGHT, BAR, ROW = 900, 150, 290, 14, 22
HEAD, GROUP = 74, 40


def draw_row(picture, row, y, scale):
    picture.text(LEFT - 8, y + 11, row["case"], anchor="end")
    beside = WIDTH - RIGHT + 12
    if "missing" in row:
        picture.text(LEFT, y + 11, row["missing"], fill=svg.GREY)
        return
    missed = row["reached"] is False
    colour = svg.GREY if row["bound"] is None else svg.ORANGE if missed else svg.BLUE
    picture.box(LEFT, y, scale * row["value"], BAR, colour)
    ends = [LEFT + scale * row[end] for end in ("least", "greatest")]
    picture.line(*(ends[0], y + BAR / 2), *(ends[1], y + BAR / 2), stroke=svg.INK)
    for end in ends:
        picture.line(end, y + 4, end, y + BAR - 4, stroke=svg.INK)
    words = table.number(row["value"])
    if row["bound"] is not None:
        bound = LEFT + scale * row["bound"]
        picture.line(bound, y - 3, bound, y + BAR + 3, stroke=svg.INK, width=2)
        words += f", {table.wanted(row)}" + (": MISSED" if missed else "")
    picture.text(beside, y + 11, words, fill=svg.ORANGE if missed else svg.INK)


def bars(summarised, machine, when):
    groups = table.by_group(summarised)
    height = HEAD + sum(GROUP + ROW * len(rows) for rows in groups.values()) + 10
    picture = svg.Picture(WIDTH, height, "Lockstep beside TensorFlow and PyTorch")
    picture.text(20, 28, picture.title, size=17, bold=True)
    picture.text(20, 48, f"{machine}; {when}", size=11, fill=svg.GREY)
    picture.text(20, 64, "bar: median; thin line: least to greatest of the rounds; upright line: what "
                 "is wanted; orange: missed; grey: nothing is wanted", size=11, fill=svg.GREY)
    y = HEAD
    for group, rows in groups.items():
        picture.text(20, y + 24, group, size=13, bold=True)
        y += GROUP
        longest = max(max(row["bound"] or 0, row.get("greatest", 0)) for row in rows)
        for row in rows:
            draw_row(picture, row, y - 6, (WIDTH - LEFT - RIGHT) / longest)
            y += ROW
    return picture.render()
