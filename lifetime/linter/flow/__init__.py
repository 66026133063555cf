"""Which names hold detached leaves, where their `.grad` is read, and whether it is released on every path.

An abstract interpreter over `ast`. `values` says what an expression may hold, `state` what has happened on a path. The machine
itself is one chain of classes, each a step larger: `machine` (events), `conditions`, `expressions`, `calls`, `containers`,
`vocabulary` (torch), `binding`, `statements`, `following` (other functions), `managers` (with), `interpreter`. `roots` says
which functions are a backward, `fields` what other methods left on an object, `flow` puts the findings of one file together.
"""
