"""How an operation gets its row: elementwise rules and structural operations, applied to tensors."""
