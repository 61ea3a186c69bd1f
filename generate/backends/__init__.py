"""What several instruments stand on: encoders, vision-language models, detectors, services and their pictures. No instrument is here."""
