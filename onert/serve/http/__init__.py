"""The protocol over HTTP: connections and endpoints."""
