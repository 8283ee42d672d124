"""What is spoken with the ResourceManager of Hadoop YARN. Blind to policy."""
