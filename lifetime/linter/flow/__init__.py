"""Which names hold detached leaves, where their `.grad` is read, and whether it is released on every path.

An abstract interpreter over `ast`, one inheritance chain from small to large: `values` (what an expression may hold), `state` (what
has happened on a path), `machine` (events), `tests` (what a condition proves), `expressions`, `calls`, `statements`, `interpreter`.
`roots` says which functions are a backward, `flow` puts the findings of one file together.
"""
