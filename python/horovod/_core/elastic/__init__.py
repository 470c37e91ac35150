"""Training that goes on while workers come and go: what every front end shares.

Words: a worker is a process; its rank is its place in one world; a reset leads from one world to the
next (`shutdown` and `init`); a commit is a copy of the state that training can go back to.
"""
