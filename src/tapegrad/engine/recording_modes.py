"""Whether threads record, for those who must not be interrupted half-way: count and mode of a thread change in one step."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import retain
from tapegrad.engine.objects import attribute, change_attribute, clear_error, new_integer


@inline
def counted(tape, more):
    """Count further threads that do not record; False without memory."""
    count = tape.recording_off + more
    number = new_integer(count)
    if number == 0:
        clear_error()
        return False
    tape.recording_off = count
    change_attribute(tape, tape.tape_object, TAPE_RECORDING_OFF, number)
    return True


@entry("int64(Tape,int64)")
def count_recording_off(tape, more):
    """Count further threads that do not record; `FULL` without memory."""
    return 0 if counted(tape, more) else FULL


@entry("int64(Tape,int64,int64)")
def switch_recording(tape, modes, enabled):
    """Let a thread that is not in inference mode record, or not; whether it did before, `FULL` without memory."""
    before = attribute(tape, modes, MODES_ENABLED) == tape.true
    if before != (enabled != 0):
        if not counted(tape, -1 if enabled != 0 else 1):
            return FULL
        now = tape.true if enabled != 0 else tape.false
        retain(now)
        change_attribute(tape, modes, MODES_ENABLED, now)
    return 1 if before else 0
