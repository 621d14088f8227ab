"""What TFLite and circle share: the schema, its reader, and the import of each operator."""
