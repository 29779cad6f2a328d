"""Program -> machine code, one folder a kind of machine."""
