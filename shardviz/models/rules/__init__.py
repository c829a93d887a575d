"""Rules by which parameters are split: patterns of names, logical axes, a function; in files, and shipped."""
