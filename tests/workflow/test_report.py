"""The report as a reader sees it: every section and figure in headless Chromium, offline, without an error."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workflow.conftest import Workspace
from tests.workflow.test_findings import written_lines

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SECTIONS = {
    "Answers": {
        "depth_profile",
        "best_layers",
        "correlation_matrix",
        "scores",
        "gains",
        "score_vs_cost",
        "metric_vs_score",
        "correlations",
        "selection",
    },
    "Metrics": {"metric_prompt_entropy", "metric_curvature", "metric_lidar", "metric_dime", "valley", "released"},
    "Model neox": {"scores~neox", "metrics~neox"},
    "Model bert": {"scores~bert", "metrics~bert"},
}
WORDS = {
    "Answers": "scores of every layer, n = 20 test items",
    "Metrics": "curvature, n = ",
    "Model neox": "scores on every task, n = 20 test items",
    "Model bert": "metrics, n = ",
}
IMAGE = "document.querySelector('div.p-3 > img')"


class Reader:
    """A page on which requests to anything but local files are refused and listed, as are its errors."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1440, "height": 900})
        self.refused: list[str] = []
        self.errors: list[str] = []
        self.page.route("**/*", self._route)
        self.page.on("console", self._console)
        self.page.on("pageerror", self._error)

    def _route(self, route: Any) -> None:
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            self.refused.append(route.request.url)
            route.abort()

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _error(self, error: Any) -> None:
        self.errors.append(str(error))

    def home(self) -> None:
        """Go to the list of sections."""
        self.page.locator("nav ol li a").first.click()

    def sections(self) -> list[str]:
        """Return the names of the sections, in the order of the menu."""
        names = self.page.locator("nav ul li a span").all_inner_texts()
        return [name for name in names if name not in ("Workflow", "Statistics", "About")]

    def open(self, section: str) -> int:
        """Open a section and return how many figures it has."""
        self.home()
        self.page.locator("nav").first.get_by_text(section, exact=True).click()
        self.page.wait_for_selector("tbody tr")
        return self.page.locator("tbody tr").count()

    def findings(self) -> list[str]:
        """Show the first item of the first section; return its lines."""
        self.open("Answers")
        line = self.page.locator("tbody tr").first
        assert line.inner_text().strip() == "all findings in ten lines"
        line.locator("td").last.locator("a").first.click()
        lines = self.page.frame_locator("iframe").locator("li")
        lines.first.wait_for()
        return lines.all_inner_texts()

    def show(self, section: str, row: int) -> tuple[str, str, str]:
        """Show a figure; return its label in the list, its file and the text beside it."""
        self.open(section)
        line = self.page.locator("tbody tr").nth(row)
        label = line.inner_text().strip()
        buttons = line.locator("td").last.locator("a")
        self.page.evaluate(f"{IMAGE}?.removeAttribute('src')")
        buttons.nth(0).click()
        source = f"{IMAGE}?.getAttribute('src') === app.state.contentPath"
        self.page.wait_for_function(f"{source} && {IMAGE}.complete && {IMAGE}.naturalWidth > 0", timeout=10_000)
        assert self.page.locator("div.p-3 > img").is_visible()
        buttons.nth(1).click()
        self.page.wait_for_selector("li.prose")
        file = self.page.evaluate("app.state.resultPath")
        return label, file, self.page.locator("nav").first.inner_text()


@contextlib.contextmanager
def reading(path: str) -> Iterator[Reader]:
    """Open a report in Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        reader = Reader(browser)
        reader.page.goto(path)
        reader.page.wait_for_selector("nav ul")
        yield reader
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
def test_every_figure_is_shown_with_its_caption_and_without_an_error(finished: Workspace) -> None:
    run = finished.snakemake("--report", "report.html")
    assert run.status == 0, run.output[-3000:]
    report = finished.path("report.html")
    try:
        with reading(report.as_uri()) as reader:
            assert "can one know it without labels" in reader.page.locator("body").inner_text()
            assert reader.sections() == ["Answers", "Metrics", "Model bert", "Model neox"]
            assert [line.strip() for line in reader.findings()] == written_lines(finished)
            for section, figures in SECTIONS.items():
                first = int(section == "Answers")  # after the findings
                found = [reader.show(section, row) for row in range(first, reader.open(section))]
                assert {file for _, file, _ in found} == {f"results/figures/{name}.png" for name in figures}
                assert any(WORDS[section] in label for label, _, _ in found), found
                for label, file, text in found:
                    without = file.endswith("released.png")  # the tiny study has no variant of the authors' code
                    assert without or "n = " in label, (file, label)
                    assert "depth" in text or "layer" in text or "definition" in text, (file, text)
                    if section.startswith("Model"):
                        assert "Readouts: mean, mean_normed, mean_skip_first, weighted_mean; headline: mean_normed." in text
                        assert "No untrained twin was run on these." in text
            assert reader.errors == []
            assert reader.refused == []
    finally:
        report.unlink(missing_ok=True)
    assert finished.pending() == {}  # reading n from the tables for the report changes no rule
