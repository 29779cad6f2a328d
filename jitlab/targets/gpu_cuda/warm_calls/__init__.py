"""Calls with arrays in a GPU's memory that C answers.

Parts, in the order of the data: device_arguments, gpu_entry_code, gpu_entry.
"""
