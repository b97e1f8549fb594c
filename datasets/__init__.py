"""Where items come from: one module per loader, the splits of protocols, and the affinity of items."""
