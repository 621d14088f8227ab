"""How far floats may lie from what another implementation gives, in parts of the output's range."""

CLOSE = 1e-5
"""For any model but these."""

ROUGH = {
    "pose_landmark_full": 4e-3,  # its mask is what is left of large sums: LiteRT's kernels are 1.4e-3 apart
    "selfie_segmentation": 1e-4,  # likewise
    "nmp": 1e-4,  # takes logarithms of what is near 0; native code lies within 1e-6 of LiteRT's default kernels
    "ocr_dr": 2e-3,  # quantises activations when it runs: one bit may move a letter's score
    "style_transfer_quantized_dynamic": 0.5,  # quantises activations when it runs: one bit may move a whole picture
}
"""Where sums cancel, or floats are rounded to integers on the way: about what LiteRT's own kernels differ by."""
