"""Quantise float models in TFLite and circle files, writing files of the same format."""
