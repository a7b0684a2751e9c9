//! Tickets for BIOS changes: what the running system shows, compared with what is wanted, written for the data centre.
//!
//! Firmware is never changed from here.

pub mod dmidecode;
pub mod observation;
pub mod observe;
