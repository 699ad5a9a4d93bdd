"""From what people have (arrays, frames, tensors, files) to one pool of rows, and its preparation by the level rules."""
