"""Services that processes of different jobs find each other by."""
