"""Files that hold TFLite models beside other things: LiteRT-LM's `.litertlm`, and MediaPipe's `.task` archives."""
