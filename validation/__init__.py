"""What must hold: data checks, quality control, submissions, reproduction of published values."""
