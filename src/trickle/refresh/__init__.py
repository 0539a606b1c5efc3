"""Stream tables: their definition, the choice of what a refresh does, and the refresh itself."""
