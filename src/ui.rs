//! The only file that writes to the terminal.
