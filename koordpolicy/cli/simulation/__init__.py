"""What came of a simulation, for a person: reports, charts of a day, explanations. Data in, lines out."""
