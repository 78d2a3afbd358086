"""From rules and engine to compiled code: the generated text, and the library or the files that hold what became of it."""
