"""The compiled engine: recording, reclamation, planning and the reverse sweep.

The modules of this folder are Numba source. They are not imported one by one: `tapegrad.kernels.generated_text` joins them,
in the order of `SOURCES`, with the functions made from the rule table into one file that is
named by the hash of its content, so a cached kernel can never be older than what it was made from.
"""

SOURCES = (
    "layout",
    "structs",
    "memory",
    "strided",
    "reference_counts",
    "rule_loops",
    "handles",
    "rows",
    "records",
    "record_scalars",
    "record_elementwise",
    "record_structural",
    "written",
    "owned",
    "vacating",
    "reclaim",
    "objects",
    "new_leaves",
    "record_operation",
    "recording_modes",
    "growth",
    "operator_results",
    "items",
    "operators",
    "places",
    "plan",
    "unpacking",
    "adjoints",
    "elementwise",
    "maps",
    "host_steps",
    "sweep",
    "delivery",
    "backward",
    "recurrence",
    "replay",
)

# The second file: what makes linear tapes, and what sweeps over them, the latter for each number of lanes.
LINEAR_SOURCES = (
    "linear_layout",
    "linear_structs",
    "linear_size",
    "linearise",
    "weights",
    "set_layout",
    "index_sets",
    "interactions",
)
LANE_SOURCES = ("lanes", "linear_sweeps")
LANES = (1, 8, 32)

# The third file: loops over whole arrays, of operations whose derivative is Python. They know nothing of the tape.
ARRAY_SOURCES = (
    "layout",
    "structs",
    "memory",
    "runs",
    "indexed_elements",
    "pooling_windows",
    "window_columns",
    "standardising",
    "class_choices",
    "ordered_elements",
    "triangular_parts",
    "elimination",
    "grouped_elements",
    "chosen_elements",
    "log_sums",
    "running_sums",
    "remainders",
    "pair_distances",
    "factored_systems",
    "colouring_orders",
    "colouring",
    "star_colouring",
    "acyclic_colouring",
    "edge_layout",
    "fronts",
    "edge_pushing",
    "element_order",
    "jacobian_rows",
    "section_layout",
    "sections",
    "section_steps",
)
