"""What the console looks at; `world.World` says what each of them is asked."""
