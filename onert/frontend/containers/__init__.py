"""Containers that hold TFLite models among other things: LiteRT-LM's `.litertlm` and MediaPipe's `.task` files."""
