"""A hook of MkDocs: each picture is a link to itself, so that a phone opens it alone and zooms."""

from __future__ import annotations

import re


def on_page_content(html: str, **_: object) -> str:
    """The page with a link around each picture that has none."""
    return re.sub(r'(?<!">)(<img [^>]*src="([^"]+\.svg)"[^>]*>)', r'<a href="\2">\1</a>', html)
