"""A second target: it runs Programs statement by statement on NumPy. What stands above `targets/` is tested with it, too."""
