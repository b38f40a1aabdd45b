"""The numbers of an arena as arrays: who said what when, at which prices, and how it came out."""
