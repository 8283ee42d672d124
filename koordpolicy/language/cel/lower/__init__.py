"""From the typed form to something that runs. Row programs: `row`, one generated function.

`operators` is the table of templates, `nodes` and `loops` write each kind of node, `body` one function,
`runtime` is what generated code calls.
"""
