"""The questions that can be asked, one file each."""
