"""Everything that runs a model over rows: text-to-image models, text filters, judges, and the engine that resumes."""
