"""Known questions with known answers: `python -m tests.vectors FILE... [--kind K]...`.

A vector is an input of one kind and the answer Koordinator (or Kubernetes) gives to it. `files` reads
them, `runners` maps each kind to the part of the project that answers it, `compare` says whether two
answers are equal, `run` puts the three together. The files themselves are not part of the project;
they are looked for beside it, in `../shared/vectors`.
"""
