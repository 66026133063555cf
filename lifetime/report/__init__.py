"""Models in, lines out: text, pictures, pages and files for other programs. Nothing here prints."""
