"""The console: a page in a browser that shows a cluster over time, why things are as they are, and what policies decide.

`worlds/` is what is looked at: a simulation on its virtual clock, a picture at rest, a cluster as it is now; each gives frames
(`frames.py`), one a moment, and a snapshot for questions. `api.py` says all of it as JSON, `static/` is the page itself, `guard.py`
stands before both. Nothing is loaded from elsewhere, and nothing is told to anybody. Why a pod is where it is the command line
knows: it hands in what answers (`questions.py`), so that page and terminal say the same.
"""
