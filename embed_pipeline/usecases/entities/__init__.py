"""Entities: create them, queue them, find those that lack an embedding."""
