"""Files to samples: tables of any common format, or a sentence that says what is wrong with the file."""
