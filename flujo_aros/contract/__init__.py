"""What a step promises to return."""
