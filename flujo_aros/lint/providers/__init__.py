"""What providers and llama.cpp make of a JSON Schema before they enforce it: keywords they drop, limits they refuse."""
