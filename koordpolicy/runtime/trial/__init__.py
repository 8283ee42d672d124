"""Revisions are tried where they can do no harm, before a live process takes them.

A process of its own, forked before the live one has threads, keeps a compiler that remembers. For each revision
it forks again, with limits of CPU time and memory: there the revision is compiled, tested, and its decisions are
evaluated. Whatever becomes of that, the live process only hears how it ended.

    live process            keeper of trials               trial
    client.Trials  ──────▶  server: fork, watch,  ──────▶  attempt: compile, test, evaluate, rehearse
                   ◀──────  kill past the limits  ◀──────  a verdict, or no more word
"""
