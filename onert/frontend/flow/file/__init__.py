"""Flow files, versions 3 to 6: their records, and how they are read and written, byte for byte.

Everything is little-endian and packed, with no padding anywhere:

```
int    4 bytes, two's complement
long   8 bytes, unsigned
str    int length, then that many bytes of UTF-8
attr   str name, str value
data   long length, then that many bytes; a length of 0 means "no data"

flow       "flow", int version, [5: int flags],
           int n, variable*; int n, operation*; int n, function*; int n, connector*; [4: int n, blob*]
variable   [5: int flags], str name, int n, str alias*, str type, int rank, int size*, [6: int n, attr*], data
operation  [5: int flags], str name, str type, int n, str input*, int n, str output*, int n, attr*
function   [5: int flags], str name, int n, str operation*
connector  [5: int flags], str name, int n, str variable*
blob       [5: int flags], str name, str type, int n, attr*, data
```
`[5: ...]` is present from version 5 on. Before version 5, the type of a variable that is a reference begins with `&`.

Source: SLING's guide to Myelin, "Flow file format", and the readers of SLING.
"""

from .decode import MAGIC, decode
from .encode import encode
from .records import (
    VERSIONS,
    Attributes,
    Blob,
    Connector,
    FlowFile,
    Function,
    FunctionFlag,
    Operation,
    OperationFlag,
    Variable,
    VariableFlag,
    described,
)

__all__ = [
    "MAGIC",
    "VERSIONS",
    "Attributes",
    "Blob",
    "Connector",
    "FlowFile",
    "Function",
    "FunctionFlag",
    "Operation",
    "OperationFlag",
    "Variable",
    "VariableFlag",
    "decode",
    "described",
    "encode",
]
