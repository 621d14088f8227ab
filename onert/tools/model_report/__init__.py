"""The report of `onert_inspect`: as plain data (docs/report_data.md), as text, and as one page."""
