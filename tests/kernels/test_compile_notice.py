"""The line on stderr when the engine is compiled for long."""

import time

import pytest

from tapegrad.compilation import notice
from tapegrad.compilation.notice import Notice


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Notice:
    """A notice that is due at once."""
    monkeypatch.setattr(notice, "PATIENCE", 0.0)
    return Notice()


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What stands on stderr when something is there, or nothing came for long."""
    until, text = time.monotonic() + 10.0, ""
    while not text and time.monotonic() < until:
        text = capsys.readouterr().err
    return text


def test_it_says_what_why_and_where_it_is_kept(impatient: Notice, capsys: pytest.CaptureFixture[str]) -> None:
    impatient.reason = "the sources were changed"
    with impatient.around("some/folder"):
        line = said(capsys)
    assert line == (
        "tapegrad: compiling the engine for this machine (the sources were changed); it happens once, and is kept in some/folder\n"
    )


def test_it_says_that_nothing_is_kept(impatient: Notice, capsys: pytest.CaptureFixture[str]) -> None:
    with impatient.around(None):
        assert "cannot be kept" in said(capsys)


def test_it_is_said_once(impatient: Notice, capsys: pytest.CaptureFixture[str]) -> None:
    with impatient.around("some/folder"):
        said(capsys)
    with impatient.around("some/folder"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_short_compilations_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    notice = Notice()
    with notice.around("some/folder"):
        pass
    assert capsys.readouterr().err == ""


def test_code_that_was_read_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    notice = Notice()
    with notice.around("some/folder"):
        time.sleep(0.01)
    notice.was_read()
    assert notice._spent == pytest.approx(0.0, abs=1e-12)
