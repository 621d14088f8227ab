"""Layers of bytes on processors whose registers hold a word."""
