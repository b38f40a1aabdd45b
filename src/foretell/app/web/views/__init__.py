"""What pages show, as plain frozen values: no HTML here, and nothing that a JSON reader could not have."""
