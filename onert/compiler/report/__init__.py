"""Reports on compiled programs: tables and diagrams."""
