"""Numba's pipelines that record: what they do besides compiling."""

from __future__ import annotations

from typing import Any

from numba.core.compiler import DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables, LiteralUnroll, TranslateByteCode

from tapegrad.nopython.compiler.recording_pass import AddTape, Fold
from tapegrad.nopython.functions import comparing as comparing
from tapegrad.nopython.numba_interface.linking import LinkedCompiler
from tapegrad.nopython.twins.compiled_versions import plain_type
from tapegrad.nopython.twins.generations import Freeze, FreezeInlined
from tapegrad.nopython.twins.recording_twin import PIPELINES

__all__ = ["PromotingCompiler", "RecordingCompiler"]


@register_pass(mutates_CFG=True, analysis_only=False)
class UnrollAsWritten(LiteralUnroll):  # type: ignore[misc]
    """Loops over tuples of several types are written out by the types that the items have in the user's function.

    Nothing is known yet of those in the recording: operators are not statements before the next pass.
    """

    _name = "tapegrad_literal_unroll"

    def run_pass(self, state: Any) -> bool:
        kinds, state.args = state.args, tuple(map(plain_type, state.args))
        try:
            return bool(super().run_pass(state))
        finally:
            state.args = kinds


class RecordingCompiler(LinkedCompiler):
    """Numba's pipeline, with the tape as an argument and folded statements."""

    level = 0

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("tapegrad_recording")
        builder = DefaultPassBuilder
        untyped = builder.define_untyped_pipeline(self.state)
        for entry, description in untyped.passes:
            pipeline.add_pass(UnrollAsWritten if entry is LiteralUnroll else entry, description)
            if entry is TranslateByteCode:
                pipeline.add_pass(AddTape, "the tape as an argument")
            if entry in (TranslateByteCode, InlineClosureLikes):  # which brings the text of inner functions
                pipeline.add_pass(Freeze, "globals as they were")
            if entry is InlineInlinables:
                pipeline.add_pass(FreezeInlined, "globals of other functions as they were")
        pipeline.add_pass(Fold, "statements folded into rows")
        return self.add_typed(pipeline)


class PromotingCompiler(RecordingCompiler):
    """The same, where every new float array may hold variables."""

    level = 1


PIPELINES[:] = RecordingCompiler, PromotingCompiler
