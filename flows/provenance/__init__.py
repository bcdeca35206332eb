"""What a snapshot was made from, by the store's own records."""
