"""The commands. Each module has `add_to(commands)`, which describes its options and sets the function that runs it."""
