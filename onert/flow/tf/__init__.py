"""Convert TensorFlow graphs to functions of flows (needs the extra `tensorflow`).

from onert.flow.tf import Extractor

flow = Flow()
Extractor(session, flow).add(flow.func("classifier"), [x], [y])
flow.save("classifier.flow")
"""

from .extractor import Extractor

__all__ = ["Extractor"]
