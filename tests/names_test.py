"""docs/names.md tells the truth: names_test.py SOURCE-ROOT

Every name of tests/names/seed_names.txt has one row; a row names what a public header declares, or
something to come that none declares yet; every function of strategy.h and extended.h is on the page.
The checks are first tried on a small page that is right, and then wrong in each of these ways.
"""
import pathlib
import re
import sys

PLACES = {"today", "2.0", "multi-worker", "1.11", "around"}
PARTS = {"input", "cluster", "v1"}
EXPLAINED = ["strategy.h", "extended.h"]  # whose functions the page must have
IDENTIFIER = re.compile(r"\b(?:ls|LS)_[A-Za-z0-9]\w*(?:\.\w+)?")


class Headers:
    """What the public headers declare: {file name: text}."""

    def __init__(self, texts):
        self.texts = {name: re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
                      for name, text in texts.items()}
        self.all = "\n".join(self.texts.values())
        self.names = set(re.findall(r"\b(?:ls|LS)_[A-Za-z0-9]\w*", self.all))

    def declare(self, identifier):
        name, _, member = identifier.partition(".")
        if member and member != "h":
            body = re.search(r"struct %s\s*\{(.*?)\}" % name, self.all, re.S)
            return bool(body and re.search(r"\b%s\b" % member, body[1]))
        return name in self.names

    def functions(self, header):
        return re.findall(r"\bLS_API\b[^;(]*?\b(ls_\w+)\s*\(", self.texts.get(header, ""))


class Row:
    def __init__(self, line):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        self.line, self.good = line, len(cells) == 4
        names, places, self.ours, self.remark = cells if self.good else ("", "", "", "")
        self.names = re.findall(r"`([^`]+)`", names)
        self.places = [place.strip() for place in places.split(",")]

    def part(self):
        """What it waits for; None when it waits for nothing."""
        match = re.match(r"to come: ([\w-]+)", self.ours)
        return match and match[1]


def table_rows(page):
    """The rows of the tables with four columns."""
    rows, inside = [], False
    for line in page.splitlines():
        if line.startswith("| name in TensorFlow |"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            rows.append(Row(line))
    return rows


def check_row(row, headers):
    if not row.good or not row.names or not set(row.places) <= PLACES:
        return [f"not a row of names, places, name in Lockstep, remark: {row.line}"]
    name, found = row.names[0], IDENTIFIER.findall(row.ours)
    if row.part():
        bad = [] if row.part() in PARTS else [f"'{name}' is to come with '{row.part()}', which is no part"]
        return bad + [f"'{name}' is marked to come, but a header declares {x}" for x in found if headers.declare(x)]
    files = re.findall(r"`<lockstep/(\w+\.h)>`", row.ours)
    if not found and not files and not row.ours.startswith("none"):
        return [f"'{name}' has no name in Lockstep: write `ls_...`, to come: PART, or none"]
    if row.ours.startswith("none") and not row.remark:
        return [f"'{name}' is none without a reason"]
    return [f"'{name}' names <lockstep/{x}>, which is not there" for x in files if x not in headers.texts]


def check_list(rows, listed):
    """Rows and the list tell of the same names."""
    bad = []
    for place, name in listed:
        count = sum(place in row.places and name in row.names for row in rows)
        if count != 1:
            bad.append(f"'{name}' of {place} has {count} rows: it wants one")
    for row in rows:
        for name in row.names:
            if not any((place, name) in listed for place in row.places):
                bad.append(f"'{name}' is not in the list for {', '.join(row.places)}")
        for place in row.places:
            if not any((place, name) in listed for name in row.names):
                bad.append(f"'{row.names[0]}' does not occur in {place}")
    return bad


def complaints(page, list_text, headers):
    rows = table_rows(page)
    listed = [tuple(line.split("\t")) for line in list_text.splitlines()
              if line and not line.startswith("#")]
    bad = [text for row in rows for text in check_row(row, headers)]
    bad += check_list([row for row in rows if row.good], listed)
    for row in rows:  # what is planned may be named, and nowhere else
        if row.part():
            page = page.replace(row.line, row.remark)
    present = IDENTIFIER.findall(page)
    bad += [f"the page names {x}, which no public header declares"
            for x in dict.fromkeys(present) if not headers.declare(x)]
    for header in EXPLAINED:
        functions = headers.functions(header)
        if not functions:
            bad.append(f"<lockstep/{header}> declares nothing")
        bad += [f"{x} of {header} is not on the page, and not in 'Ours alone' either"
                for x in functions if x not in present]
    return bad


# ---- the checks themselves -----------------------------------------------------------

GOOD_PAGE = """Made with `ls_make`.
| name in TensorFlow | where | in Lockstep | remark |
|---|---|---|---|
| `Strategy` | today, 1.11 | `ls_make` | options: `ls_make_options.size` |
| `Strategy(old)` | 1.11 | to come: v1, `ls_old` | as `ls_make` |
| `graph` | 1.11 | none | there is none |

| in Lockstep | what it is |
|---|---|
| `ls_alone` | ours |
"""
GOOD_LIST = "# names\ntoday\tStrategy\n1.11\tStrategy\n1.11\tStrategy(old)\n1.11\tgraph\n"
GOOD_HEADERS = {
    "strategy.h": "typedef struct ls_make_options { size_t size; } ls_make_options; /* ls_old */\n"
                  "LS_API const char *const *ls_make(int (*fn)(void), ls_make_options *o);",
    "extended.h": "LS_API void ls_alone(void);",
}
WRONG = [  # a replacement in the page, the list or a header, and what is said about it
    ("`graph` |", "`graphs` |", "'graph' of 1.11 has 0 rows"),
    ("today, 1.11", "1.11", "'Strategy' of today has 0 rows"),
    ("today, 1.11", "today, 1.11, 2.0", "'Strategy' does not occur in 2.0"),
    ("| `graph` |", "| `graph`, `Graph` |", "'Graph' is not in the list"),
    ("`ls_alone` |", "`ls_alone`, `ls_lost` |", "the page names ls_lost"),
    ("ls_make_options.size", "ls_make_options.sise", "the page names ls_make_options.sise"),
    ("Made with `ls_make`", "Made with `ls_old`", "the page names ls_old"),
    ("`ls_old` |", "`ls_alone` |", "marked to come, but a header declares ls_alone"),
    ("to come: v1", "to come: v3", "to come with 'v3'"),
    ("`ls_alone` | ours", "`ls_make` | ours", "ls_alone of extended.h is not on the page"),
    ("none | there is none", "none | ", "none without a reason"),
    ("none | there is none", "never | ", "has no name in Lockstep"),
    ("| none |", "| none", "not a row"),
    ("| `ls_make` | options", "| `<lockstep/none.h>` | options", "names <lockstep/none.h>"),
    ("today\tStrategy", "today\tStrategy\ntoday\tscope", "'scope' of today has 0 rows"),
    ("LS_API void ls_alone", "LS_API void ls_old(void); LS_API void ls_alone", "a header declares ls_old"),
    ("LS_API void ls_alone", "LS_API int ls_new(void); LS_API void ls_alone", "ls_new of extended.h is not"),
    ("LS_API void ls_alone(void);", "", "<lockstep/extended.h> declares nothing"),
]


def self_test():
    found = complaints(GOOD_PAGE, GOOD_LIST, Headers(GOOD_HEADERS))
    assert not found, found
    for old, new, said in WRONG:
        texts = [GOOD_PAGE, GOOD_LIST, *GOOD_HEADERS.values()]
        assert any(old in text for text in texts), old
        texts = [text.replace(old, new) for text in texts]
        found = complaints(texts[0], texts[1], Headers(dict(zip(GOOD_HEADERS, texts[2:]))))
        assert any(said in text for text in found), (old, new, said, found)


def main(root):
    self_test()
    page = (root / "docs/names.md").read_text(encoding="utf-8")
    names = (root / "tests/names/seed_names.txt").read_text(encoding="utf-8")
    headers = Headers({path.name: path.read_text(encoding="utf-8")
                       for path in (root / "include/lockstep").glob("*.h")})
    found = complaints(page, names, headers)
    for text in found:
        print(f"docs/names.md: {text}")
    return 1 if found else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
