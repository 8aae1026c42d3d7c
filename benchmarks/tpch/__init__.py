"""Workloads derived from TPC-H, each in several ways that give equal results.

They are not TPC-H: money is in whole cents, averages are left to the reader, and no run is audited.
"""
