"""Where things are kept: an SQLite file, or a PostgreSQL database that many machines share."""
