"""A picture as text: the few shapes that charts are made of, on a light ground."""
from xml.sax.saxutils import escape, quoteattr

INK, GREY, FAINT, GROUND = "#1f2328", "#656d76", "#d0d7de", "#ffffff"
BLUE, ORANGE = "#2f6fb3", "#c4570c"


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.shapes = width, height, []
        self.title = title
        self.box(0, 0, width, height, GROUND)

    def add(self, name, content=None, **attributes):
        words = "".join(f" {key.replace('_', '-')}={quoteattr(str(value))}"
                        for key, value in attributes.items())
        self.shapes.append(f"<{name}{words}/>" if content is None
                           else f"<{name}{words}>{escape(content)}</{name}>")

    def box(self, x, y, width, height, fill):
        self.add("rect", x=f"{x:g}", y=f"{y:g}", width=f"{width:.1f}", height=f"{height:g}", fill=fill)

    def line(self, x1, y1, x2, y2, stroke=GREY, width=1):
        self.add("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}",
                 stroke=stroke, stroke_width=width)

    def path(self, points, stroke, dashed=False):
        attributes = {"stroke_dasharray": "5 4"} if dashed else {}
        self.add("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), fill="none",
                 stroke=stroke, stroke_width=2, **attributes)

    def dot(self, x, y, fill):
        self.add("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, fill=fill)

    def text(self, x, y, words, size=12, fill=INK, anchor="start", bold=False):
        self.add("text", words, x=f"{x:.1f}", y=f"{y:.1f}", font_size=size, fill=fill,
                 text_anchor=anchor, font_weight="bold" if bold else "normal")

    def render(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" font-family="sans-serif">\n'
                f"<title>{escape(self.title)}</title>\n" + "\n".join(self.shapes) + "\n</svg>\n")
