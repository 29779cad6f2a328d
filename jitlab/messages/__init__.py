"""The words of a report, where they are read: numbers with their units, and the text of each code."""
