"""Reports as one self-contained HTML file.

Text from a model never becomes markup: reports are compressed and encoded in base64, and the page's script only creates
text nodes from them. A Content Security Policy allows only the file's own script and style, and no network access.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from onert.ir.errors import printable

STYLES = ("page.css", "panels.css")
SCRIPTS = (
    "vendor/dagre.min.js",
    "core.js",
    "parts.js",
    "charts.js",
    "places.js",
    "layout.js",
    "canvas.js",
    "graph.js",
    "detail.js",
    "overview.js",
    "tensors.js",
    "memory.js",
    "timing.js",
    "roofline.js",
    "live.js",
    "main.js",
)
"""The parts of the page's script, in this order. `vendor` holds third-party libraries, each with its licence."""


def document(reports: Sequence[dict[str, Any]], *, live: str = "") -> str:
    """The page of one report, or of two side by side. With `live`, it requests further reports there."""
    style = "\n".join(map(_text, STYLES))
    script = "\n".join(map(_text, SCRIPTS))
    names = dict.fromkeys(report["model"]["name"] or "model" for report in reports)
    return Template(_text("page.html")).substitute(
        title=escape(printable(f"{' and '.join(names)} - onert")),
        policy=policy(style, script, live=bool(live)),
        style=style,
        script=script,
        data=packed({"reports": list(reports), "live": live}),
    )


def policy(style: str, script: str, *, live: bool) -> str:
    """The Content Security Policy of a page with this style and script. A live page may connect to its own server."""
    rules = [
        "default-src 'none'",
        f"style-src '{_digest(style)}'",
        f"script-src '{_digest(script)}'",
        "connect-src 'self'" if live else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def packed(data: object) -> str:
    """Plain data as compressed JSON in base64. The result is reproducible."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def _text(name: str) -> str:
    """A file of the page. A library gets its licence, and loses its reference to a source map."""
    folder = files("onert.tools.model_report") / "page"
    text = (folder / name).read_text(encoding="utf-8")
    if not name.startswith("vendor/"):
        return text
    licence = (folder / f"{name.removesuffix('.min.js')}.LICENSE.txt").read_text(encoding="utf-8").strip()
    return f"/* {name.rpartition('/')[2]}\n{licence} */\n" + re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.M)
