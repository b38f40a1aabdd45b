"""The web face: pages and a JSON API over the same views, live from the event store. Needs the extra `web`."""
