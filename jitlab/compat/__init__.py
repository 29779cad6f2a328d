"""Names of other frameworks for what jitlab does: an example runs with nothing changed but its import."""
