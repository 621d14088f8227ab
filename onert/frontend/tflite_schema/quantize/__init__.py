"""Float models of TFLite and circle files as integers, in files of the same format."""
