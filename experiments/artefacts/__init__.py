"""One file a table or figure of the paper; the settings stand at the top of each."""
