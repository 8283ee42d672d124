"""What is spoken with container runtimes: their messages as bytes, of which only what is named here is ever touched."""
