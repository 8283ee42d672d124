"""The recommender: what containers used, remembered as histograms, and what they should request by it."""
