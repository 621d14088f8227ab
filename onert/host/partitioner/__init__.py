"""The partitioner, which divides a network among devices."""

from .assignment import Kind
from .partitioner import Partitioned, Partitioner, Wanted
from .report import partition_svg, partition_table
from .user import PartitionConfig

__all__ = ["Kind", "PartitionConfig", "Partitioned", "Partitioner", "Wanted", "partition_svg", "partition_table"]
