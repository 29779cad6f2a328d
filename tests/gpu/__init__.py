"""The GPU's target on a simulated device."""
