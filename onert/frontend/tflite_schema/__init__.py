"""What TFLite and circle share: the schema, its reader, and what each operator becomes."""
