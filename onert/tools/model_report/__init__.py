"""What `onert_inspect` says of a model: as plain data (docs/report_data.md), as text, and as one page."""
