"""Flow files of Myelin."""
