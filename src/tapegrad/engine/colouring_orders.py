"""Numbers of the orders in which the columns of a matrix are coloured."""

SMALLEST_LAST, INCIDENCE, LARGEST_FIRST = 0, 1, 2
