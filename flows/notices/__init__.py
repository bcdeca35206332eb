"""Messages about runs that failed or came out worse than they should."""
