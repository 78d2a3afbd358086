"""What the tape's compiled entries are declared as is what they are."""

from tapegrad.kernels.entries import ENTRIES, OTHER_NAMES
from tapegrad.library_build import entry_types


def test_declarations_are_as_the_definitions_are() -> None:
    assert entry_types.FILE.read_text(encoding="utf-8") == entry_types.text(), (
        "python -m tapegrad.library_build.entry_types writes them anew"
    )


def test_every_entry_is_declared_with_the_module_that_defines_it() -> None:
    text = entry_types.text()
    assert [name for name in (*ENTRIES, *OTHER_NAMES) if f"    def {name}(" not in text] == []
    assert "    # engine.plan.start\n" in text


def test_declaration_has_names_and_types_of_arguments() -> None:
    assert "def start(self, tape: int, sweep: int, handle: int, value: float, /) -> int: ..." in entry_types.text()
