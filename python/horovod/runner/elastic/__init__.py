"""Elastic jobs under the names that programs import.

`horovodrun` decides about its elastic jobs itself, in C++. These classes are for programs that start the
workers on their own (a cluster's scheduler, Ray, a test) and want the same rules.
"""
