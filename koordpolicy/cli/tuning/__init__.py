"""`koordpolicy tune`: what may change, what is wanted, the search, and what it leaves behind.

`objective` reads what is wanted, `space` what may change, `evaluation` simulates, where `engines` or a
`dask_cluster` say, `search` proposes by Optuna and keeps what was found, `evidence` compares the best with what there was by seeds that the search never saw, `rollout` writes how it goes live.
"""
