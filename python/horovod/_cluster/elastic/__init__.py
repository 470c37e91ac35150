"""Elastic jobs whose workers a cluster engine starts: `horovodrun --decide` decides, the engine carries out.

driver.py    the loop in the driver: events to the decider, actions to the engine
decider.py   the process that decides, and runs the store of the job
exchange.py  where workers call the driver; line.py is one such connection
seat.py      what a worker needs to take its place
relay.py     the worker's end: the core's socket on one side, the line on the other
"""
