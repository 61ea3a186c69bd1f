"""The geographical study's ratings, analysed: tables, research questions, agreement, proxies, and what lies beyond the study.

Source: "Inspecting the Geographical Representativeness of Images from Text-to-Image Models" (arXiv:2305.11080).
"""
