"""The owner's side: how an index comes to exist and is kept."""
