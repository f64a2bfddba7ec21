"""What a reader follows: links that lead somewhere, figures small enough for a page, a citation file that can be read."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MADE = ("workflow_scripts/layerwise/metrics/participation_ratio.py",)  # by the reader
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_named_files_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    named = re.findall(r"`((?:docs|rules|configs|envs|profiles|workflow_scripts|tests|tools)/[\w./-]+\.\w+)`", text)
    absent = [link for link in links if not (page.parent / link).exists()]
    absent += [name for name in named if not (ROOT / name).exists() and name not in MADE]
    assert absent == []


def test_figures_of_the_pages_are_small_and_used() -> None:
    shown = "".join(page.read_text("utf-8") for page in PAGES)
    figures = sorted((ROOT / "docs" / "figures").iterdir())
    assert [figure.name for figure in figures if f"figures/{figure.name}" not in shown] == []
    assert all(figure.stat().st_size < 150_000 for figure in figures)


def test_the_citation_names_software_and_study() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (cited["cff-version"], cited["title"], cited["license"]) == ("1.2.0", "layerwise", "MIT")
    assert {"message", "authors"} <= set(cited)
    (study,) = cited["references"]
    assert study["identifiers"][0]["value"] == "arXiv:2502.02013"
    assert len(study["authors"]) == 7
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    assert version
    assert cited["version"] == version.group(1)
