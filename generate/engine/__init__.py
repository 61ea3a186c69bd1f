"""The engine: rows in, durable batches out."""
