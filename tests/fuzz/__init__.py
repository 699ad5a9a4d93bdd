"""Random input of every kind: frames, damaged files, command lines; a case is made from its number and can be run alone.

``python -m tests.fuzz frames 17`` runs one case, ``python -m tests.fuzz files 0 500`` many.
"""
