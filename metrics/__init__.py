"""What is measured: one folder a metric, loadable by ``evaluate`` and usable as plain functions.

Imports none of our other packages.
"""
