"""The static pass: sources in, findings out. Imports no torch."""
