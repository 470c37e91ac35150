"""Datasets that other processes prepare: the tf.data service, whose parts find each other here."""
