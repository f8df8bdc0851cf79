"""A page in headless Chromium, as Debian has it (apt-get install chromium), and what went wrong while it was used."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

QUIETLY = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


def chromium():
    """The path of a Chromium, or None: NEARDUP_CHROMIUM names one that is not on the path."""
    found = (os.environ.get("NEARDUP_CHROMIUM"), *map(shutil.which, NAMES))
    return next(filter(None, found), None)


@contextlib.contextmanager
def launched():
    """A browser; skips the test where there is none."""
    path = chromium()
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium, or name one in NEARDUP_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*QUIETLY])
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser, path: Path, **options):
    """A file in a page of its own; fails where the page wrote to the console, or asked for anything but itself."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, **options)
    page, troubles, asked = context.new_page(), [], []
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    address = Path(path).absolute().as_uri()
    page.goto(address)
    try:
        yield page
    finally:
        context.close()
    assert troubles == []
    assert [url for url in asked if url != address and not url.startswith("data:")] == []
