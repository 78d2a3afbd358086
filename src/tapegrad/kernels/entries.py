"""The compiled entries that the tape calls, and the kernels that these need; each is loaded when it is first used."""

from __future__ import annotations

from tapegrad.engine import layout as at
from tapegrad.kernels.opcodes import LOOPS

__all__ = ["ENTRIES", "KERNELS_OF", "KERNEL_WORDS", "OTHER_NAMES"]

ENTRIES = [
    "scalar_row",
    "operators",
    "array1",
    "array2",
    "array3",
    "view_row",
    "map_row",
    "copy_row",
    "reduce_row",
    "join_row",
    "host_row",
    "operation_row",
    "unpack_saved",
    "tensors_of_row",
    "switch_recording",
    "count_recording_off",
    "leaf_row",
    "another_handle",
    "number_output",
    "own_payload",
    "mark_overwritten",
    "mark_written",
    "write_value",
    "move_written",
    "drop",
    "collect_rows",
    "move_column",
    "move_handles",
    "new_anchor",
    "drop_anchor",
    "change_flags",
    "release_all",
    "pin",
    "correct_pins",
    "mark_paths",
    "add_root",
    "plan",
    "clear",
    "run",
    "conclude",
    "deliver_gradients",
    "offer",
    "drop_trash",
    "drop_handed",
    "give_up",
    "add_to_adjoint",
    "place_leaf",
    "wants",
    "maps_of_row",
    "turn_map",
    "start",
    "call_loop_of_rule",
    "sums_of_rows",
    "sum_by_halves_to",
    "solve_recurrence",
    "replay",
    "take_inputs",
]

KERNEL_WORDS = {
    "partial_block": at.PARTIAL_BLOCK,
    "scalar_partials": at.SCALAR_PARTIALS,
    "gather_block": at.GATHER_BLOCK,
    "scatter_block": at.SCATTER_BLOCK,
    "deliver": at.DELIVER,
    "elementwise_step": at.ELEMENTWISE_STEP,
    "map_step": at.MAP_STEP,
    "fill_block": at.FILL_BLOCK,
    "scalar_run": at.SCALAR_RUN,
    "other_scalars": at.OTHER_SCALARS,
    "give_operands": at.GIVE_OPERANDS,
    "add_cotangents": at.ADD_COTANGENTS,
    "walk": at.WALK,
    "value_block": at.VALUE_BLOCK,
    "move_step": at.MOVE_STEP,
} | LOOPS

# Entries under another name, where they need more kernels.
OTHER_NAMES = {"array_leaf_row": "leaf_row"}

# Which kernels the sweep needs for rows that an entry records (or what the entry itself calls). Adjoints of arrays may be strided.
STRIDED = ("gather_block", "scatter_block")
HOSTED = ("give_operands", "move_step", "add_cotangents", "deliver", "fill_block", *STRIDED)
KERNELS_OF = {
    "array1": ("partial_block", "elementwise_step", *STRIDED),
    "array2": ("partial_block", "elementwise_step", *STRIDED),
    "array3": ("partial_block", "elementwise_step", *STRIDED),
    "view_row": ("map_step", *STRIDED),
    "map_row": ("map_step", *STRIDED),
    "copy_row": ("map_step", *STRIDED),
    "reduce_row": ("map_step", *STRIDED),
    "join_row": ("map_step", *STRIDED),
    "host_row": HOSTED,
    "operation_row": HOSTED,
    "array_leaf_row": STRIDED,
    "run": ("walk", "scalar_run", "deliver", "fill_block"),
    "conclude": ("deliver",),
    "deliver_gradients": ("deliver",),
    "add_to_adjoint": ("gather_block", "deliver", "fill_block"),
}
