"""Pages in a real browser: what is on them works, and nothing runs or is asked for that is not theirs."""

import re
import time

import numpy as np
import picture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import launched, opened
from page_of import page_of

from neardup_gpu import Writing, dedup, passages
from neardup_gpu.data import arrow
from neardup_gpu.report_page import of_folder
from neardup_gpu.results.tables import kind_column, with_recipe
from neardup_gpu.store.artefacts import write_report
from neardup_gpu.store.parquet import write_table

HOSTILE = "</script><script>document.title = 'gone'</script><img src=x onerror=\"document.title = 'gone'\">"


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    """The page of some made news, and its result."""
    folder = tmp_path_factory.mktemp("news")
    result = dedup(
        picture.shards(folder / "news"), id_column="id", output=folder / "out", writing=Writing(report=True, check=0)
    )
    return folder / "out" / "report.html", result


@pytest.fixture(scope="module")
def page(browser, news):
    with opened(browser, news[0], permissions=["clipboard-read", "clipboard-write"]) as tab:
        yield tab


@pytest.fixture(autouse=True)
def as_opened(request):
    """The page as it was opened, for each test."""
    if "page" in request.fixturenames:
        request.getfixturevalue("page").reload()


def listed(page):
    return page.locator("#groups .id").all_inner_texts()


def test_the_slider_says_what_runs_decide(page, news):
    slider, said = page.locator("#threshold"), page.locator("#at")
    removed = news[1].removed.num_rows
    assert said.inner_text().startswith(f"At 0.8: {removed} documents removed. ")
    mark = page.locator(".threshold_marks line")
    before = mark.bounding_box()["x"]
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    other = news[1].at(0.9).removed.num_rows
    assert said.inner_text().startswith(f"At 0.9: {other} documents removed, {removed - other} fewer than now. ")
    drawing, plot = page.locator(".chart svg").first.bounding_box(), slider.bounding_box()
    assert mark.bounding_box()["x"] - before == pytest.approx(plot["width"] / 2, abs=3)
    assert drawing["x"] < plot["x"] and plot["x"] + plot["width"] <= drawing["x"] + drawing["width"] + 1


def test_search_and_filters(page, news):
    groups = news[1].groups()
    assert page.locator("#found").inner_text() == f"{len(groups)} groups of {len(groups)} listed"
    page.locator("#search").fill("FEED/0696-1")  # the id of a removed document
    assert listed(page) == ["press-agency/0696"]
    page.locator("#search").fill("flood keswick")  # words of texts
    assert 0 < page.locator("#groups > li").count() < len(groups)
    page.locator("#search").fill("no such words")
    assert page.locator("#found").inner_text() == f"0 groups of {len(groups)} listed"
    page.locator("#search").fill("")
    page.locator("#smallest").fill("4")
    assert page.locator("#groups > li").count() == sum(size >= 4 for size in groups["size"].to_pylist())
    page.locator("#smallest").fill("2")
    page.locator("#high").fill("0.82")
    assert 0 < page.locator("#groups > li").count() < 50
    page.locator("#high").fill("1")
    page.locator("#source").select_option("local-papers.parquet")
    shown = int(page.locator("#found").inner_text().split()[0])
    gone = news[1].removed.select(["group", "file"]).to_pylist()
    assert shown == len({row["group"] for row in gone if row["file"] == "local-papers.parquet"})


def test_a_warning_leads_to_its_groups(page):
    warned = page.locator(".warning")
    assert warned.locator("h2").inner_text() == "1 file lost more than 50% of its documents"
    warned.get_by_role("button", name="Show its groups").click()
    assert page.locator("#source option:checked").inner_text() == "syndicated-feed.parquet"
    shown, _, _, every, _ = page.locator("#found").inner_text().split()
    assert 0 < int(shown) < int(every)


def test_distances(browser, news, tmp_path):
    result = dedup(news[1].sources.documents.describe()["paths"], id_column="id", method="simhash")
    result.write_report(tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        page.locator("#sort").select_option("distance")
        bits = [int(words.split()[-2]) for words in page.locator("#groups .range").all_inner_texts()]
        assert bits == sorted(bits, reverse=True) and 0 < bits[0] <= 3
        assert page.locator("#low").count() == page.locator("#threshold").count() == 0
        page.locator("#groups button").first.click()
        assert page.locator(".member .side").count()


def test_orders(page):
    sizes = [int(words.split()[0]) for words in page.locator("#groups .size").all_inner_texts()]
    assert sizes == sorted(sizes, reverse=True)
    page.locator("#sort").select_option("id")
    assert listed(page) == sorted(listed(page))
    page.locator("#sort").select_option("least")
    lowest = [float(words.split()[1]) for words in page.locator("#groups .range").all_inner_texts()]
    assert lowest == sorted(lowest) and lowest[0] < 0.85
    assert page.locator("#groups > li").count() == 50
    page.locator("#more").press("Enter")
    assert page.locator("#groups > li").count() == 100


def test_a_group_opens_by_keyboard(page, news):
    page.locator("#sort").select_option("least")
    button = page.locator("#groups button").first
    assert button.get_attribute("aria-expanded") == "false"
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    panel = page.locator(f"#{button.get_attribute('aria-controls')}")
    member = panel.locator(".member").first
    kept, removed = member.locator(".side p").all()
    assert kept.locator("del").count() and not kept.locator("ins").count()
    assert removed.locator("ins").count() and not removed.locator("del").count()
    id = member.locator("h4 bdi").inner_text()
    words = news[1].explain(id).words
    assert removed.locator("ins").all_inner_texts() == [text.strip() for op, text in words if op == "added"]
    member.get_by_role("button", name="Copy the command that explains this").click()
    member.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"neardup explain {news[0].parent} {id}"
    button.press("Enter")
    assert not panel.is_visible()


def test_what_a_screen_reader_is_told(page):
    page.locator("#groups button").first.click()
    names = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, [role=region], section")]
            .filter((each) => !each.labels?.length && !each.textContent.trim() && !each.ariaLabel)
            .map((each) => each.outerHTML)"""
    )
    assert names == []
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1 and all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    assert page.locator(".chart [aria-label*='pairs from']").count() > 5
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read(browser, news, scheme):
    """Contrast of at least 4.5 to 1, as WCAG 2 asks for (1.4.3)."""
    with opened(browser, news[0], color_scheme=scheme) as page:
        page.locator("#sort").select_option("least")
        page.locator("#groups button").first.click()
        for which in (".summary li", ".note", "#groups .id", ".warning li", "del", "ins", ".cut", ".tiles small"):
            assert page.locator(which).first.evaluate(CONTRAST) > 4.5, which


CONTRAST = """(element) => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => numbers(colour).slice(0, 3)
        .map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
    let behind = element;
    while (numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const [a, b] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor].map(light);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


def test_the_summary_prints_on_one_sheet(browser, news, tmp_path):
    with opened(browser, news[0]) as page:
        page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
        page.emulate_media(media="print")
        assert not page.locator("#search").is_visible() and page.locator(".summary tbody tr").last.is_visible()
    printed = (tmp_path / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


def test_the_summary_answers_five_questions(page, news):
    said, result = page.locator(".summary li").all_inner_texts(), news[1]
    assert len(said) == 5 and f"{result.removed.num_rows:,} are removed" in said[0]
    assert said[1].startswith("The sources that lost most are syndicated-feed.parquet")
    assert "no pair at that threshold was missed" in said[2] and "Check by hand the 20 pairs below" in said[4]
    removed, worth = (page.locator(f".summary tbody {cell}").all_inner_texts() for cell in ("th", ".number"))
    of = dict(zip(*(result.removed[name].to_pylist() for name in ("id", "resemblance")), strict=True))
    assert [f"{of[id]:.4f}" for id in removed] == worth == sorted(worth) and len(set(removed)) == 20
    lowest = sorted(value for value in of.values() if value < 1)[:100]
    assert float(worth[-1]) <= lowest[-1] + 1e-4
    words = {text for op, text in result.explain(removed[0]).words if op == "removed"}
    assert page.locator(".summary tbody del").first.inner_text() in {" ".join(text.split()) for text in words}
    assert page.locator(".summary .chart [aria-label^='syndicated-feed.parquet: ']").count() == 2


def test_axe_finds_nothing_serious(page):
    page.locator("#groups button").first.click()
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


def test_a_narrow_window(browser, news):
    with opened(browser, news[0]) as page:
        page.set_viewport_size({"width": 380, "height": 700})
        page.locator("#groups button").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_without_scripts(browser, news):
    with opened(browser, news[0], java_script_enabled=False) as page:
        page.get_by_text("All thresholds as a table").click()
        assert page.get_by_role("cell", name="0.9", exact=True).is_visible()
        assert page.get_by_text("let this page run its script").is_visible()
        assert not page.locator("#search").is_visible()


def test_what_comes_from_documents_does_not_run(browser, tmp_path):
    words = " ".join(f"word{number}" for number in range(30))
    texts = [f"{words} {HOSTILE} {words}", f"{words} a {HOSTILE} b {words}"]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [HOSTILE, f"{HOSTILE}2"], "text": texts}), tmp_path / "in" / "<b>.parquet")
    result = dedup(tmp_path / "in", threshold=0.5, id_column="id", writing=Writing(check=0))
    result.write_report(tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        assert page.title() == "Near-duplicates: this result"
        page.locator("#groups button").click()
        assert HOSTILE in page.locator(".side p").first.inner_text().replace("\n", "")
        assert page.locator("#groups img, #groups script, b").count() == 0
        assert page.locator("#groups .id").inner_text() == HOSTILE
        assert page.title() == "Near-duplicates: this result"
    (tmp_path / "notebook.html").write_text(f"<title>cell</title>{result._repr_html_()}{page_of(result)._repr_html_()}")
    with opened(browser, tmp_path / "notebook.html") as page:
        frame = page.frame_locator("iframe")
        frame.locator("#groups button").click()
        assert frame.locator(".side").count() == 2 and page.title() == "cell"


def made(folder, num):
    """The result of a run over so many documents that never was; its input is gone."""
    small = dedup({"text": ["to be or not to be"] * 2}, writing=Writing(check=0))
    draw, rows = np.random.default_rng(5), np.arange(num)
    starts = np.cumsum(np.minimum(draw.zipf(1.7, num), 5000))
    starts = np.concatenate([[0], starts[starts < num]])
    keeper = starts[np.searchsorted(starts, rows, side="right") - 1]
    kept = keeper == rows
    worth = np.where(draw.random(num) < 0.2, 1.0, 0.8 + 0.2 * draw.beta(6, 2, num))
    ids = pa.array([f"https://example.org/{row:07}/page-{row % 977}.html" for row in range(num)])
    files = pa.array([f"shard-{number:05}.parquet" for number in range(2000)])
    documents = {
        "id": ids,
        "kept": arrow(kept),
        "duplicate_of": ids.take(arrow(keeper, kept)),
        "resemblance": arrow(worth, kept),
        "group": ids.take(arrow(keeper)),
        "file": pa.DictionaryArray.from_arrays(arrow(rows * 2000 // num), files),
        "row": arrow(rows % 500 + 1),
    }
    gone = np.flatnonzero(~kept)
    pairs = {"id_a": ids.take(arrow(keeper[gone])), "id_b": ids.take(arrow(gone)), "resemblance": arrow(worth[gone])}
    pairs["kind"] = kind_column(np.where(worth[gone] == 1, 0, 2).astype(np.int8), small.recipe)
    sizes = np.unique(np.unique(keeper[gone], return_counts=True)[1] + 1, return_counts=True)
    exact = int((worth[gone] == 1).sum())
    counts = {"documents": num, "kept": int(kept.sum()), "removed": len(gone), "groups": int(sizes[1].sum())}
    counts |= {"removed_identical": exact, "removed_same_words": 0, "removed_near": len(gone) - exact}
    counts["text_bytes"] = 3000 * num
    said = {"counts": small.report["counts"] | counts, "group_sizes": np.transpose(sizes).tolist()}
    gone_input = {"input": small.report["input"] | {"format": "parquet", "paths": [str(folder / "gone.parquet")]}}
    folder.mkdir()
    write_table(with_recipe(documents, small.recipe), folder / "documents.parquet")
    write_table(with_recipe(pairs, small.recipe), folder / "pairs.parquet")
    write_report(folder, small.report | said | gone_input)


def test_a_million_documents(browser, tmp_path):
    made(tmp_path / "out", 1_000_000)
    page = of_folder(tmp_path / "out", output=tmp_path / "page.html")
    assert len(page.html.encode()) < 5_000_000
    with opened(browser, tmp_path / "page.html") as tab:
        assert tab.get_by_text("are listed: the largest, those that agree least").is_visible()
        assert tab.get_by_text("Listed are 200 of 2,000 files").is_visible()
        assert tab.get_by_text("gone.parquet: no such file").is_visible()
        for what, value in (("#search", "page-97"), ("#smallest", "50"), ("#search", "")):
            begin = time.perf_counter()
            tab.locator(what).fill(value)
            assert tab.locator("#groups > li").count()
            assert time.perf_counter() - begin < 2


def test_as_much_text_as_fits(browser, tmp_path):
    """Long texts in a script that takes more bytes, of which a page has a part."""
    draw = np.random.default_rng(1)
    texts = []
    for _ in range(400):
        words = [f"<{word}>語語" for word in draw.integers(0, 5000, 900)]
        texts.append(" ".join(words))
        for place in range(5, 900, 30):
            words[place] = "<&other>"
        texts.append(" ".join(words))
    page = dedup({"text": texts}, threshold=0.3, writing=Writing(check=0)).write_report(tmp_path / "page.html")
    assert 1_500_000 < len(page.html.encode()) < 5_000_000
    with opened(browser, tmp_path / "page.html") as tab:
        assert tab.get_by_text("Others did not fit this page").is_visible()
        tab.locator("#search").fill("語語 <&other>")
        assert tab.locator("#groups > li").count()


def test_the_pictures_of_the_docs(browser, news, tmp_path):
    picture.draw(browser, news[0], tmp_path)
    for name in ("report.png", "report_group.png"):
        drawn = (tmp_path / name).read_bytes()
        assert drawn.startswith(b"\x89PNG") and len(drawn) < 200_000


def test_passages_side_by_side(browser, tmp_path):
    """A passage leads to the same passage in the other document, and a square of the map says what it counts."""
    words = [f"w{number}" for number in range(400)]
    texts = [" ".join(words), " ".join([*words[300:340], *["x"] * 200, *words[100:130], "new", *words[131:160]])]
    table = {"id": ["old", HOSTILE], "text": texts, "site": ["agency", HOSTILE]}
    options = {"id_column": "id", "text_columns": "text", "output": tmp_path / "out", "writing": Writing(by="site")}
    passages(table, length=10, engine="cpu", **options)
    with opened(browser, tmp_path / "out" / "passages.html") as page:
        assert page.title() != "gone"
        own, theirs = page.locator(".side").nth(0), page.locator(".side").nth(1)
        assert [own.locator(".passage").count(), theirs.locator(".passage").count()] == [2, 2]
        assert (own.locator("ins").inner_text(), theirs.locator("del").inner_text()) == ("new", "w130")
        left, right = own.bounding_box(), theirs.bounding_box()
        assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]
        for side, other in ((own, theirs), (theirs, own)):
            link = side.locator(".passage", has_text="w300")
            link.click()
            target = page.locator(":target")
            assert target.inner_text() == link.inner_text() == " ".join(words[300:340])
            assert target.get_attribute("href") == f"#{link.get_attribute('id')}"
            assert other.locator(":target").count() == 1
            box = target.bounding_box()
            assert 0 <= box["y"] < 900
        shades = {
            square.locator("title").text_content(): float(square.get_attribute("fill-opacity"))
            for square in page.locator(".chart rect").all()
        }
        assert len(shades) == 4 and shades[f"{HOSTILE} from agency: 99 tokens"] == 1
        assert shades["agency from agency: 0 tokens"] == 0
