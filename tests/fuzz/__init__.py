"""Fuzzers as commands: `python -m tests.fuzz KIND --seconds N`.

A kind is a `Target`: inputs to begin from, a way to change them, and what is done with one. An input shows a defect when
anything but the errors that the project promises comes out, when it takes longer than a hang, or when memory grows with
the number of inputs. Such an input is written down; mended, it is kept below `found/KIND` and runs with the suite.
"""
