"""Objects as a tenant, an author or a broken client might make them, for whoever reads objects from outside."""
