//! Whole runs on this machine, in each form of output.
