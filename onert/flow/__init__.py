"""Myelin's flows: built, compiled and computed.

    import onert.flow as myelin

    flow = myelin.Flow()
    f = myelin.Builder(flow, "f")
    x = f.var("x", myelin.DT_FLOAT, [1, 64])
    y = f.relu(x, name="y")

    net = myelin.Compiler().compile(flow)
    data = net.cell("f").instance()
    data[x][0, 0] = 5
    data.compute()

Names, orders of arguments and defaults are those of Myelin (`sling.myelin`).
"""

from .builder import Builder
from .cell import Cell
from .channel import Channel
from .compiler import Compiler
from .convert import from_package
from .flow import Flow
from .graph import (
    DT_BOOL,
    DT_DOUBLE,
    DT_FLOAT,
    DT_FLOAT32,
    DT_FLOAT64,
    DT_INT,
    DT_INT8,
    DT_INT16,
    DT_INT32,
    DT_INT64,
    Blob,
    Connector,
    Function,
    Operation,
    Variable,
)
from .instance import Instance
from .network import Network
from .tensor import Tensor

__all__ = [
    "DT_BOOL",
    "DT_DOUBLE",
    "DT_FLOAT",
    "DT_FLOAT32",
    "DT_FLOAT64",
    "DT_INT",
    "DT_INT8",
    "DT_INT16",
    "DT_INT32",
    "DT_INT64",
    "Blob",
    "Builder",
    "Cell",
    "Channel",
    "Compiler",
    "Connector",
    "Flow",
    "Function",
    "Instance",
    "Network",
    "Operation",
    "Tensor",
    "Variable",
    "from_package",
]
