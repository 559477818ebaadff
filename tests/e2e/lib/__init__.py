"""Tools of the end-to-end tests: servers, clients and readers of answers. Nothing here is a test."""
