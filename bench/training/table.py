"""Rows as text: what was measured, how far rounds lie apart, what was wanted."""
import statistics


def number(value):
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def wanted(row):
    if row["bound"] is None:
        return "-"
    text = f"at {'least' if row['more'] else 'most'} {row['bound']:g}"
    return text + (f" (aim {row['aim']:g})" if row["aim"] is not None else "")


def verdict(row):
    if row["reached"] is None:
        return ""
    if not row["reached"]:
        return "MISSED"
    return "reached, aim too" if row["aimed"] else "reached"


def aligned(lines):
    """Cells in columns; the first to the left, others to the right but the last."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    last = len(widths) - 1
    return ["  ".join(cell.ljust(w) if i in (0, last) else cell.rjust(w)
                      for i, (cell, w) in enumerate(zip(line, widths))).rstrip() for line in lines]


def cells(row):
    if "missing" in row:
        return [row["case"], "-", "-", wanted(row), row["missing"]]
    return [row["case"], number(row["value"]), f"{number(row['least'])}..{number(row['greatest'])}",
            wanted(row), verdict(row)]


def by_group(summarised):
    """{group: rows} in their order."""
    groups = {}
    for row in summarised:
        groups.setdefault(row["group"], []).append(row)
    return groups


def render(summarised):
    """The table; a group of rows begins with what its numbers are."""
    lines = [["", "median", "spread", "wanted", ""]] + [cells(row) for row in summarised]
    head, *body = aligned(lines)
    text, at = [head], 0
    for group, rows in by_group(summarised).items():
        text += ["", group] + ["  " + line for line in body[at:at + len(rows)]]
        at += len(rows)
    text[0] = "  " + head
    return "\n".join(text) + "\n"


def taken(parts):
    """By a hypervisor, of the cores' time; nothing where nobody knows."""
    known = [part for part in parts if part is not None]
    return f"{100 * statistics.mean(known):.1f} %" if known else "-"


def speeds(runs):
    """Samples a second of every way, as they are: for those who want to see more than ratios."""
    found = {}
    for run in runs:
        if "samples_per_second" in run:
            found.setdefault((run["case"], run["way"]), []).append(run)
    lines = [["case, way", "samples/s", "spread", "loss", "MiB", "taken"]]
    for (case, way), those in found.items():
        rates = sorted(run["samples_per_second"] for run in those)
        lines.append([f"{case}, {way}", number(statistics.median(rates)),
                      f"{number(rates[0])}..{number(rates[-1])}",
                      f"{statistics.mean(run['loss'] for run in those):.4f}",
                      f"{max(run['peak_rss_bytes'] for run in those) / 2**20:.0f}",
                      taken([run.get("taken") for run in those])])
    return "\n".join(aligned(lines)) + "\n"
