"""The survey of the geographical study: people rate how well images reflect what they see around them."""
